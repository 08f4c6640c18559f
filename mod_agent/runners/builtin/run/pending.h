/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that runs gain while they execute, shared between all runs: by
 * receiving replies and answers, which are pending until they are in a state,
 * and by growing, when a node adds to a large state. Where memory is short, one
 * run receives and two runs grow, until their nodes are done or others replace
 * them: ../README.md, Memory.
 */
#ifndef AGENT_RUNNER_PENDING_H
#define AGENT_RUNNER_PENDING_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_time.h>

/* The pending text above which a run pauses for others. */
#define RUNNER_PENDING_SMALL ((size_t)64 * 1024)
/* The memory by which a node lets a run grow: an answer of a model, or the
 * replies of all tools, and the messages made from them. */
#define RUNNER_PENDING_NODE ((size_t)8 * 1024 * 1024)
/* The time without new text after which a run may be replaced. */
#define RUNNER_PENDING_IDLE apr_time_from_sec(1)

/* The time for which a run receives or grows while others wait. */
#define RUNNER_PENDING_SLICE apr_time_from_sec(10)

/* The most runs that grow while growth is limited. */
#define RUNNER_PENDING_GROWING 2

typedef struct runner_growing_t {
    /* The run, by the address of its pending bytes; NULL for none. */
    const size_t *bytes;
    /* When it became one that grows, and when it last received something or
     * began a node (core/clock.h). */
    apr_time_t began_at;
    apr_time_t grown_at;
    /* There is memory for what another run in its place receives. */
    bool has_room;
} runner_growing_t;

typedef struct runner_pending_t {
    /* The pending bytes of all runs, and the limit above which runs pause. */
    size_t bytes;
    size_t bytes_max;
    /* Memory is so short that only one run receives. */
    bool limits_receiving;
    /* Memory is so short that only two runs grow. */
    bool limits_growth;

    /* The run that may receive more, by the address of its pending bytes; NULL
     * for none. */
    const size_t *receiver;
    /* When it was chosen, and when it last received something (core/clock.h).
     */
    apr_time_t chosen_at;
    apr_time_t received_at;
    /* Another run has paused since the receiver was chosen. */
    bool is_contended;

    /* The first one always begins nodes, the second one while it has room. */
    runner_growing_t growing[RUNNER_PENDING_GROWING];
    /* Another run was refused since growth is limited. */
    bool is_growth_refused;
} runner_pending_t;

/* Sets the pending bytes of a run to value; bytes is a member of the run. */
void runner_pending_set(runner_pending_t *pending, size_t *bytes, size_t value,
                        apr_time_t now);

/* Whether the run must not receive more now; may choose it as the receiver, or
 * as one that grows. */
bool runner_pending_is_paused(runner_pending_t *pending, const size_t *bytes,
                              apr_time_t now);

/* Whether a run with a large state may begin a node now. */
bool runner_pending_may_step(const runner_pending_t *pending,
                             const size_t *bytes, apr_time_t now);

/* The same for one that is about to: makes it one of those that grow. It stays
 * one until runner_pending_end_run(), or until another run replaces it because
 * it has neither received anything nor begun a node for a second, or because
 * its ten seconds are over. */
bool runner_pending_begin_step(runner_pending_t *pending, const size_t *bytes,
                               apr_time_t now);

/*
 * Sets the limits from the bytes that all runs take and the most that they may
 * take together when they begin: receiving is limited from there on, growth
 * from 5/4 of it. A growing run is replaced as long as a node fits below 7/4 of
 * it, and a second run grows as long as two nodes fit. True when a run that was
 * refused may continue now.
 */
bool runner_pending_set_memory(runner_pending_t *pending, size_t used,
                               size_t memory_max);

/* Forgets a run that is over; true when it was one that grows. */
bool runner_pending_end_run(runner_pending_t *pending, const size_t *bytes);

/* When a run that waits may replace the receiver or a growing run;
 * AGENT_CLOCK_NEVER when no run waits, or one may already. */
apr_time_t runner_pending_wake_at(const runner_pending_t *pending,
                                  apr_time_t now);

#endif
