/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs may receive more text, and which may begin nodes. */
#include "pending.h"

#include "core/clock.h"

static runner_growing_t *find_growing(runner_pending_t *pending,
                                      const size_t *bytes)
{
    for (int i = 0; i < RUNNER_PENDING_GROWING; i++) {
        if (pending->growing[i].bytes == bytes) {
            return &pending->growing[i];
        }
    }
    return NULL;
}

static bool is_first(const runner_pending_t *pending,
                     const runner_growing_t *growing)
{
    return growing == &pending->growing[0];
}

/* When another run may take the place of one, if there is room for that. */
static apr_time_t get_slice_end(apr_time_t began_at, apr_time_t progressed_at)
{
    apr_time_t idle_at = progressed_at + RUNNER_PENDING_IDLE;
    apr_time_t over_at = began_at + RUNNER_PENDING_SLICE;

    return idle_at < over_at ? idle_at : over_at;
}

static apr_time_t get_growing_end(const runner_growing_t *growing)
{
    return get_slice_end(growing->began_at, growing->grown_at);
}

static bool may_replace_growing(const runner_pending_t *pending,
                                const runner_growing_t *growing, apr_time_t now)
{
    if (growing->bytes == NULL) {
        return is_first(pending, growing) || growing->has_room;
    }
    return growing->has_room && now >= get_growing_end(growing);
}

/* The place that the run may have among those that grow: its own, or one that
 * it may take; NULL: none. */
static const runner_growing_t *find_budget(const runner_pending_t *pending,
                                           const size_t *bytes, apr_time_t now)
{
    const runner_growing_t *place = NULL;

    for (int i = 0; i < RUNNER_PENDING_GROWING; i++) {
        const runner_growing_t *growing = &pending->growing[i];

        if (growing->bytes == bytes
            && (is_first(pending, growing) || growing->has_room)) {
            return growing;
        }
        if (place == NULL && may_replace_growing(pending, growing, now)) {
            place = growing;
        }
    }
    return place;
}

/* A run that may grow, perhaps in the place of another; else NULL. */
static runner_growing_t *admit_growing(runner_pending_t *pending,
                                       const size_t *bytes, apr_time_t now)
{
    runner_growing_t *before = find_growing(pending, bytes);
    const runner_growing_t *place = find_budget(pending, bytes, now);
    runner_growing_t *growing;

    if (place == NULL) {
        pending->is_growth_refused = true;
        return NULL;
    }
    growing = &pending->growing[place - pending->growing];
    if (growing != before) {
        if (before != NULL) {
            before->bytes = NULL;
        }
        growing->bytes = bytes;
        growing->began_at = now;
        growing->grown_at = now;
    }
    return growing;
}

static void set_receiver(runner_pending_t *pending, const size_t *bytes,
                         apr_time_t now)
{
    pending->receiver = bytes;
    pending->chosen_at = now;
    pending->received_at = now;
    pending->is_contended = false;
}

void runner_pending_set(runner_pending_t *pending, size_t *bytes, size_t value,
                        apr_time_t now)
{
    runner_growing_t *growing = find_growing(pending, bytes);

    if (value > *bytes && pending->receiver == bytes) {
        pending->received_at = now;
    }
    if (value > *bytes && growing != NULL) {
        growing->grown_at = now;
    }
    pending->bytes = pending->bytes - *bytes + value;
    *bytes = value;
    if (value == 0 && pending->receiver == bytes) {
        set_receiver(pending, NULL, now);
    }
}

static apr_time_t get_receiver_end(const runner_pending_t *pending)
{
    return get_slice_end(pending->chosen_at, pending->received_at);
}

static bool may_replace_receiver(const runner_pending_t *pending)
{
    return pending->bytes < 2 * pending->bytes_max;
}

bool runner_pending_is_paused(runner_pending_t *pending, const size_t *bytes,
                              apr_time_t now)
{
    if (*bytes > RUNNER_PENDING_SMALL && pending->limits_growth) {
        return admit_growing(pending, bytes, now) == NULL;
    }
    if (*bytes <= RUNNER_PENDING_SMALL
        || (pending->bytes < pending->bytes_max
            && !pending->limits_receiving)) {
        return false;
    }
    if (pending->receiver == NULL
        || (now >= get_receiver_end(pending)
            && may_replace_receiver(pending))) {
        set_receiver(pending, bytes, now);
    }
    pending->is_contended = pending->is_contended || pending->receiver != bytes;
    return pending->receiver != bytes;
}

bool runner_pending_may_step(const runner_pending_t *pending,
                             const size_t *bytes, apr_time_t now)
{
    return !pending->limits_growth || find_budget(pending, bytes, now) != NULL;
}

bool runner_pending_begin_step(runner_pending_t *pending, const size_t *bytes,
                               apr_time_t now)
{
    runner_growing_t *growing;

    if (!pending->limits_growth) {
        return true;
    }
    growing = admit_growing(pending, bytes, now);
    if (growing == NULL) {
        return false;
    }
    growing->grown_at = now;
    return true;
}

/* Sets whether the growing runs have room in the bytes that are left; true when
 * one has it that did not, and another run was refused. */
static bool set_room(runner_pending_t *pending, size_t left)
{
    bool has_more = false;

    for (int i = 0; i < RUNNER_PENDING_GROWING; i++) {
        bool has_room = left >= ((size_t)i + 1) * RUNNER_PENDING_NODE;

        has_more = has_more || (has_room && !pending->growing[i].has_room);
        pending->growing[i].has_room = has_room;
    }
    return has_more && pending->is_growth_refused;
}

bool runner_pending_set_memory(runner_pending_t *pending, size_t used,
                               size_t memory_max)
{
    size_t growing_max = memory_max + memory_max / 4;
    size_t grown_max = memory_max + memory_max / 4 * 3;
    bool limited_growth = pending->limits_growth;
    bool has_room = set_room(pending, used < grown_max ? grown_max - used : 0);

    pending->limits_receiving = used >= memory_max;
    pending->limits_growth = used >= growing_max;
    if (!limited_growth || pending->limits_growth) {
        return has_room;
    }
    for (int i = 0; i < RUNNER_PENDING_GROWING; i++) {
        pending->growing[i].bytes = NULL;
    }
    pending->is_growth_refused = false;
    return true;
}

bool runner_pending_end_run(runner_pending_t *pending, const size_t *bytes)
{
    runner_growing_t *growing = find_growing(pending, bytes);

    if (growing == NULL) {
        return false;
    }
    growing->bytes = NULL;
    return true;
}

/* When the next one of the growing runs becomes replaceable. */
static apr_time_t get_growing_replaceable_at(const runner_pending_t *pending,
                                             apr_time_t now)
{
    apr_time_t first = AGENT_CLOCK_NEVER;

    for (int i = 0; pending->is_growth_refused && i < RUNNER_PENDING_GROWING;
         i++) {
        const runner_growing_t *growing = &pending->growing[i];
        apr_time_t due = get_growing_end(growing);

        if (growing->bytes != NULL && growing->has_room && now < due
            && due < first) {
            first = due;
        }
    }
    return first;
}

apr_time_t runner_pending_wake_at(const runner_pending_t *pending,
                                  apr_time_t now)
{
    apr_time_t due = get_receiver_end(pending);
    apr_time_t growing_at = get_growing_replaceable_at(pending, now);

    due = pending->is_contended && may_replace_receiver(pending) && now < due
        ? due
        : AGENT_CLOCK_NEVER;
    return due < growing_at ? due : growing_at;
}
