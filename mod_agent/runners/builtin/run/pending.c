/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs may receive more text, and which may begin nodes. */
#include "pending.h"

#include "core/clock.h"

static void set_receiver(runner_pending_t *pending, const size_t *bytes,
                         apr_time_t now)
{
    pending->receiver = bytes;
    pending->received_at = now;
    pending->is_contended = false;
}

void runner_pending_set(runner_pending_t *pending, size_t *bytes, size_t value,
                        apr_time_t now)
{
    if (value > *bytes && pending->receiver == bytes) {
        pending->received_at = now;
    }
    if (value > *bytes && pending->second_stepper == bytes) {
        pending->second_stepped_at = now;
    }
    pending->bytes = pending->bytes - *bytes + value;
    *bytes = value;
    if (value == 0 && pending->receiver == bytes) {
        set_receiver(pending, NULL, now);
    }
}

static bool may_replace_receiver(const runner_pending_t *pending)
{
    return pending->bytes < 2 * pending->bytes_max;
}

bool runner_pending_is_paused(runner_pending_t *pending, const size_t *bytes,
                              apr_time_t now)
{
    if (*bytes <= RUNNER_PENDING_SMALL
        || (pending->bytes < pending->bytes_max
            && !pending->limits_receiving)) {
        return false;
    }
    if (pending->receiver == NULL
        || (now - pending->received_at >= RUNNER_PENDING_IDLE
            && may_replace_receiver(pending))) {
        set_receiver(pending, bytes, now);
    }
    pending->is_contended = pending->is_contended || pending->receiver != bytes;
    return pending->receiver != bytes;
}

static bool may_replace_second(const runner_pending_t *pending, apr_time_t now)
{
    return pending->second_stepper == NULL
        || now - pending->second_stepped_at >= RUNNER_PENDING_IDLE;
}

bool runner_pending_may_step(runner_pending_t *pending, const size_t *bytes,
                             apr_time_t now)
{
    if (!pending->limits_steps) {
        return true;
    }
    if (pending->first_stepper == NULL) {
        pending->first_stepper = bytes;
    }
    if (pending->first_stepper == bytes) {
        return true;
    }
    if (pending->nodes_free > 0
        && (pending->second_stepper == bytes
            || may_replace_second(pending, now))) {
        pending->second_stepper = bytes;
        pending->second_stepped_at = now;
        return true;
    }
    pending->is_step_refused = true;
    return false;
}

void runner_pending_begin_node(runner_pending_t *pending)
{
    pending->nodes++;
    pending->nodes_free--;
}

void runner_pending_end_node(runner_pending_t *pending)
{
    pending->nodes--;
    pending->nodes_free++;
}

/* Sets nodes_free from the memory that nodes may take; true when a run that was
 * refused a step may begin a node now. */
static bool set_room(runner_pending_t *pending, size_t bytes)
{
    bool had_no_room = pending->had_no_room;

    pending->nodes_free = (int)(bytes / RUNNER_PENDING_NODE) - pending->nodes;
    pending->had_no_room = pending->nodes_free <= 0;
    return had_no_room && !pending->had_no_room && pending->is_step_refused;
}

bool runner_pending_set_memory(runner_pending_t *pending, size_t used,
                               size_t memory_max)
{
    size_t step_max = memory_max + memory_max / 4;
    size_t node_max = memory_max + memory_max / 4 * 3;
    bool limited_steps = pending->limits_steps;
    bool has_room = set_room(pending, used < node_max ? node_max - used : 0);

    pending->limits_receiving = used >= memory_max;
    pending->limits_steps = used >= step_max;
    if (!limited_steps || pending->limits_steps) {
        return has_room;
    }
    pending->first_stepper = NULL;
    pending->second_stepper = NULL;
    pending->is_step_refused = false;
    return true;
}

bool runner_pending_end_run(runner_pending_t *pending, const size_t *bytes)
{
    bool was_first = pending->first_stepper == bytes;
    bool was_second = pending->second_stepper == bytes;

    pending->first_stepper = was_first ? NULL : pending->first_stepper;
    pending->second_stepper = was_second ? NULL : pending->second_stepper;
    return was_first || was_second;
}

static apr_time_t get_second_replaceable_at(const runner_pending_t *pending,
                                            apr_time_t now)
{
    apr_time_t due = pending->second_stepped_at + RUNNER_PENDING_IDLE;

    return pending->is_step_refused && pending->second_stepper != NULL
            && pending->nodes_free > 0 && now < due
        ? due
        : AGENT_CLOCK_NEVER;
}

apr_time_t runner_pending_wake_at(const runner_pending_t *pending,
                                  apr_time_t now)
{
    apr_time_t due = pending->received_at + RUNNER_PENDING_IDLE;
    apr_time_t second_at = get_second_replaceable_at(pending, now);

    due = pending->is_contended && may_replace_receiver(pending) && now < due
        ? due
        : AGENT_CLOCK_NEVER;
    return due < second_at ? due : second_at;
}
