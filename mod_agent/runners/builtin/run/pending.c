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

bool runner_pending_may_step(runner_pending_t *pending, const void *run)
{
    if (!pending->is_memory_scarce) {
        return true;
    }
    if (pending->stepper == NULL) {
        pending->stepper = run;
    }
    return pending->stepper == run;
}

bool runner_pending_end(runner_pending_t *pending, const void *run)
{
    if (pending->stepper != run) {
        return false;
    }
    pending->stepper = NULL;
    return true;
}

apr_time_t runner_pending_wake_at(const runner_pending_t *pending,
                                  apr_time_t now)
{
    apr_time_t due = pending->received_at + RUNNER_PENDING_IDLE;

    return pending->is_wanted && may_replace_receiver(pending) && now < due
        ? due
        : AGENT_CLOCK_NEVER;
}
