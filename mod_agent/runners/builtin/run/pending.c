/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs may receive more text, and which may begin nodes. */
#include "pending.h"

#include "core/clock.h"

static runner_stepper_t *find_stepper(runner_pending_t *pending,
                                      const size_t *bytes)
{
    for (int i = 0; i < RUNNER_PENDING_STEPPERS; i++) {
        if (pending->steppers[i].bytes == bytes) {
            return &pending->steppers[i];
        }
    }
    return NULL;
}

static bool is_first(const runner_pending_t *pending,
                     const runner_stepper_t *stepper)
{
    return stepper == &pending->steppers[0];
}

static bool may_replace_stepper(const runner_pending_t *pending,
                                const runner_stepper_t *stepper, apr_time_t now)
{
    if (stepper->bytes == NULL) {
        return is_first(pending, stepper) || stepper->has_room;
    }
    return stepper->has_room
        && now - stepper->stepped_at >= RUNNER_PENDING_IDLE;
}

static runner_stepper_t *become_stepper(runner_pending_t *pending,
                                        const size_t *bytes, apr_time_t now)
{
    runner_stepper_t *before = find_stepper(pending, bytes);

    for (int i = 0; i < RUNNER_PENDING_STEPPERS; i++) {
        runner_stepper_t *stepper = &pending->steppers[i];

        if (may_replace_stepper(pending, stepper, now)) {
            if (before != NULL) {
                before->bytes = NULL;
            }
            stepper->bytes = bytes;
            stepper->stepped_at = now;
            return stepper;
        }
    }
    pending->is_step_refused = true;
    return NULL;
}

/* The run as a stepper that may grow, which it may become; else NULL. */
static runner_stepper_t *get_growing(runner_pending_t *pending,
                                     const size_t *bytes, apr_time_t now)
{
    runner_stepper_t *stepper = find_stepper(pending, bytes);

    if (stepper != NULL && (is_first(pending, stepper) || stepper->has_room)) {
        return stepper;
    }
    return become_stepper(pending, bytes, now);
}

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
    runner_stepper_t *stepper = find_stepper(pending, bytes);

    if (value > *bytes && pending->receiver == bytes) {
        pending->received_at = now;
    }
    if (value > *bytes && stepper != NULL) {
        stepper->stepped_at = now;
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
    if (*bytes > RUNNER_PENDING_SMALL && pending->limits_steps) {
        return get_growing(pending, bytes, now) == NULL;
    }
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

bool runner_pending_may_step(runner_pending_t *pending, const size_t *bytes,
                             apr_time_t now)
{
    runner_stepper_t *stepper;

    if (!pending->limits_steps) {
        return true;
    }
    stepper = get_growing(pending, bytes, now);
    if (stepper == NULL) {
        return false;
    }
    stepper->stepped_at = now;
    return true;
}

/* Sets whether the steppers have room in the bytes that are left; true when one
 * has it that did not, and a run was refused. */
static bool set_room(runner_pending_t *pending, size_t left)
{
    bool has_more = false;

    for (int i = 0; i < RUNNER_PENDING_STEPPERS; i++) {
        bool has_room = left >= ((size_t)i + 1) * RUNNER_PENDING_NODE;

        has_more = has_more || (has_room && !pending->steppers[i].has_room);
        pending->steppers[i].has_room = has_room;
    }
    return has_more && pending->is_step_refused;
}

bool runner_pending_set_memory(runner_pending_t *pending, size_t used,
                               size_t memory_max)
{
    size_t step_max = memory_max + memory_max / 4;
    size_t grown_max = memory_max + memory_max / 4 * 3;
    bool limited_steps = pending->limits_steps;
    bool has_room = set_room(pending, used < grown_max ? grown_max - used : 0);

    pending->limits_receiving = used >= memory_max;
    pending->limits_steps = used >= step_max;
    if (!limited_steps || pending->limits_steps) {
        return has_room;
    }
    for (int i = 0; i < RUNNER_PENDING_STEPPERS; i++) {
        pending->steppers[i].bytes = NULL;
    }
    pending->is_step_refused = false;
    return true;
}

bool runner_pending_end_run(runner_pending_t *pending, const size_t *bytes)
{
    runner_stepper_t *stepper = find_stepper(pending, bytes);

    if (stepper == NULL) {
        return false;
    }
    stepper->bytes = NULL;
    return true;
}

/* When the first of the steppers may be replaced that may not yet. */
static apr_time_t get_stepper_replaceable_at(const runner_pending_t *pending,
                                             apr_time_t now)
{
    apr_time_t first = AGENT_CLOCK_NEVER;

    for (int i = 0; pending->is_step_refused && i < RUNNER_PENDING_STEPPERS;
         i++) {
        const runner_stepper_t *stepper = &pending->steppers[i];
        apr_time_t due = stepper->stepped_at + RUNNER_PENDING_IDLE;

        if (stepper->bytes != NULL && stepper->has_room && now < due
            && due < first) {
            first = due;
        }
    }
    return first;
}

apr_time_t runner_pending_wake_at(const runner_pending_t *pending,
                                  apr_time_t now)
{
    apr_time_t due = pending->received_at + RUNNER_PENDING_IDLE;
    apr_time_t stepper_at = get_stepper_replaceable_at(pending, now);

    due = pending->is_contended && may_replace_receiver(pending) && now < due
        ? due
        : AGENT_CLOCK_NEVER;
    return due < stepper_at ? due : stepper_at;
}
