/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from models and tools that is not in a state yet, of all runs. While it
 * is too much, or memory is short, one run receives more, until its node is
 * done; other runs with much of it pause. A run that has received nothing for a
 * second is replaced, so that a slow tool does not hold up others, as long as
 * the text of all runs is below twice the limit: each replaced run keeps up to
 * 4 MiB.
 */
#ifndef AGENT_RUNNER_PENDING_H
#define AGENT_RUNNER_PENDING_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_time.h>

/* The pending text above which a run pauses for others. */
#define RUNNER_PENDING_SMALL ((size_t)64 * 1024)
/* The time without new text after which the receiver may be replaced. */
#define RUNNER_PENDING_IDLE apr_time_from_sec(1)

typedef struct runner_pending_t {
    /* Bytes of all runs together, and their limit. */
    size_t bytes;
    size_t bytes_max;
    /* The runs' trees and backlogs have reached their limit of memory; or five
     * quarters of it, when runs that have grown begin their nodes one after the
     * other. */
    bool is_memory_short;
    bool is_memory_scarce;
    /* The run that begins nodes while memory is scarce; NULL for none. */
    const void *stepper;
    /* The bytes of the run that may receive more; NULL for none. When it last
     * did (core/clock.h); whether another run has asked since it began. */
    const size_t *receiver;
    apr_time_t received_at;
    bool is_wanted;
} runner_pending_t;

/* Sets a run's bytes, which belong to the run. */
void runner_pending_set(runner_pending_t *pending, size_t *bytes, size_t value,
                        apr_time_t now);

/* Whether the run must not receive more. */
bool runner_pending_is_paused(runner_pending_t *pending, const size_t *bytes,
                              apr_time_t now);

/* Whether a run may begin a node; while memory is scarce the first one that
 * asks, until runner_pending_end(). */
bool runner_pending_may_step(runner_pending_t *pending, const void *run);

/* The run is over; true when it was the one that began nodes. */
bool runner_pending_end(runner_pending_t *pending, const void *run);

/* When a paused run may replace the receiver; AGENT_CLOCK_NEVER when none
 * waits, or it may already. */
apr_time_t runner_pending_wake_at(const runner_pending_t *pending,
                                  apr_time_t now);

#endif
