/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of events: a heap by time. */
#include "group_sim.h"

#include <stdlib.h>

static bool is_before(const event_t *a, const event_t *b)
{
    return a->us < b->us || (a->us == b->us && a->order < b->order);
}

void sim_push(sim_t *sim, event_t event)
{
    uint64_t at = sim->event_count++;

    if (at == sim->event_room) {
        sim->event_room = sim->event_room * 2 + 1024;
        sim->events = realloc(sim->events, sim->event_room * sizeof(event_t));
    }
    event.order = sim->event_order++;
    while (at > 0 && is_before(&event, &sim->events[(at - 1) / 2])) {
        sim->events[at] = sim->events[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->events[at] = event;
}

event_t sim_pop(sim_t *sim)
{
    event_t first = sim->events[0];
    event_t last = sim->events[--sim->event_count];
    uint64_t at = 0;

    for (;;) {
        uint64_t child = 2 * at + 1;

        if (child >= sim->event_count) {
            break;
        }
        if (child + 1 < sim->event_count
            && is_before(&sim->events[child + 1], &sim->events[child])) {
            child++;
        }
        if (!is_before(&sim->events[child], &last)) {
            break;
        }
        sim->events[at] = sim->events[child];
        at = child;
    }
    sim->events[at] = last;
    return first;
}
