/* SPDX-License-Identifier: Apache-2.0 */
/* Counting text that is not in a state yet. */
#include "pending.h"

#include "core/clock.h"

static void set_receiver(runner_pending_t *pending, const size_t *bytes,
                         apr_time_t now)
{
    pending->receiver = bytes;
    pending->received_at = now;
    pending->is_wanted = false;
}

void runner_pending_set(runner_pending_t *pending, size_t *bytes, size_t value,
                        apr_time_t now)
{
    if (value > *bytes && pending->receiver == bytes) {
        pending->received_at = now;
    }
    if (value > *bytes && pending->second == bytes) {
        pending->stepped_at = now;
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
        || (pending->bytes < pending->bytes_max && !pending->is_memory_short)) {
        return false;
    }
    if (pending->receiver == NULL
        || (now - pending->received_at >= RUNNER_PENDING_IDLE
            && may_replace_receiver(pending))) {
        set_receiver(pending, bytes, now);
    }
    pending->is_wanted = pending->is_wanted || pending->receiver != bytes;
    return pending->receiver != bytes;
}

static bool may_replace_second(const runner_pending_t *pending, apr_time_t now)
{
    return pending->second == NULL
        || now - pending->stepped_at >= RUNNER_PENDING_IDLE;
}

bool runner_pending_may_step(runner_pending_t *pending, const size_t *bytes,
                             apr_time_t now)
{
    if (!pending->is_memory_scarce) {
        return true;
    }
    if (pending->stepper == NULL) {
        pending->stepper = bytes;
    }
    if (pending->stepper == bytes) {
        return true;
    }
    if (pending->nodes_free > 0
        && (pending->second == bytes || may_replace_second(pending, now))) {
        pending->second = bytes;
        pending->stepped_at = now;
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

bool runner_pending_set_room(runner_pending_t *pending, size_t bytes)
{
    bool was_full = pending->was_full;

    pending->nodes_free = (int)(bytes / RUNNER_PENDING_NODE) - pending->nodes;
    pending->was_full = pending->nodes_free <= 0;
    return was_full && !pending->was_full && pending->is_step_refused;
}

bool runner_pending_end(runner_pending_t *pending, const size_t *bytes)
{
    bool was_first = pending->stepper == bytes;
    bool was_second = pending->second == bytes;

    pending->stepper = was_first ? NULL : pending->stepper;
    pending->second = was_second ? NULL : pending->second;
    return was_first || was_second;
}

static apr_time_t replace_second_at(const runner_pending_t *pending,
                                    apr_time_t now)
{
    apr_time_t due = pending->stepped_at + RUNNER_PENDING_IDLE;

    return pending->is_step_refused && pending->second != NULL
            && pending->nodes_free > 0 && now < due
        ? due
        : AGENT_CLOCK_NEVER;
}

apr_time_t runner_pending_wake_at(const runner_pending_t *pending,
                                  apr_time_t now)
{
    apr_time_t due = pending->received_at + RUNNER_PENDING_IDLE;
    apr_time_t second_at = replace_second_at(pending, now);

    due = pending->is_wanted && may_replace_receiver(pending) && now < due
        ? due
        : AGENT_CLOCK_NEVER;
    return due < second_at ? due : second_at;
}
