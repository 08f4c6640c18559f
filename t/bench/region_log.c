/* SPDX-License-Identifier: Apache-2.0 */
/* Exact logs of all hosts' decisions, and their check. */
#include "region_sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void sim_log_add(sim_log_t *log, uint32_t key, uint64_t us)
{
    if (log->count == log->room) {
        log->room = log->room * 2 + 4096;
        log->entries = realloc(log->entries, log->room * sizeof(*log->entries));
    }
    log->entries[log->count].key = key;
    log->entries[log->count++].us = us;
}

static int compare(const void *a, const void *b)
{
    const sim_entry_t *first = a;
    const sim_entry_t *second = b;

    if (first->key != second->key) {
        return first->key < second->key ? -1 : 1;
    }
    return first->us < second->us ? -1 : first->us > second->us;
}

static uint64_t count_over(const sim_log_t *log)
{
    uint64_t over = 0;

    for (uint64_t i = 0; i < log->count; i++) {
        uint32_t key = log->entries[i].key;
        rlr_limit_t limit = sim_limit(key);

        if (i >= limit.count && log->entries[i - limit.count].key == key
            && log->entries[i].us - log->entries[i - limit.count].us
                < limit.interval_sec * 1000000ULL) {
            if (over++ < 5) {
                printf("key %u (%u/%u) at %" PRIu64 " us and %" PRIu64 " us\n",
                       key, limit.count, limit.interval_sec,
                       log->entries[i - limit.count].us, log->entries[i].us);
            }
        }
    }
    return over;
}

/* Refusals of requests at which less than the limit were admitted in the last
 * interval. */
static uint64_t count_wrongful(const sim_log_t *log, const sim_log_t *refusals)
{
    uint64_t wrongful = 0;
    uint64_t first = 0;
    uint64_t last = 0;

    for (uint64_t i = 0; i < refusals->count; i++) {
        uint32_t key = refusals->entries[i].key;
        uint64_t us = refusals->entries[i].us;
        rlr_limit_t limit = sim_limit(key);

        while (last < log->count
               && (log->entries[last].key < key
                   || (log->entries[last].key == key
                       && log->entries[last].us <= us))) {
            last++;
        }
        while (first < last
               && (log->entries[first].key < key
                   || log->entries[first].us + limit.interval_sec * 1000000ULL
                       <= us)) {
            first++;
        }
        wrongful += last - first < limit.count;
    }
    return wrongful;
}

uint64_t sim_log_check(sim_t *sim)
{
    qsort(sim->admissions.entries, sim->admissions.count,
          sizeof(*sim->admissions.entries), compare);
    qsort(sim->refusals.entries, sim->refusals.count,
          sizeof(*sim->refusals.entries), compare);
    sim->wrongful = count_wrongful(&sim->admissions, &sim->refusals);
    return count_over(&sim->admissions);
}
