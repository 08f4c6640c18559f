/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that runs gain while they execute, shared between all runs.
 *
 * Receiving: replies and answers are pending until they are in a state. While
 * all pending text exceeds its limit, or memory is short, one run receives
 * more, until its node is done; other runs with much pending text pause. A
 * receiver without new text for a second is replaced, so that a slow tool does
 * not hold up other runs, as long as the pending text is below twice the limit:
 * each replaced run keeps up to 4 MiB.
 *
 * Stepping: while memory is scarcer still, at most two runs with a large state
 * begin nodes.
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

typedef struct runner_pending_t {
    /* The pending bytes of all runs, and the limit above which runs pause. */
    size_t bytes;
    size_t bytes_max;
    /* Memory is so short that only one run receives. */
    bool limits_receiving;
    /* Memory is so short that only two runs with a large state begin nodes. */
    bool limits_steps;

    /* The run that may receive more, by the address of its pending bytes; NULL
     * for none. */
    const size_t *receiver;
    /* When it last received something (core/clock.h). */
    apr_time_t received_at;
    /* Another run has paused since the receiver was chosen. */
    bool is_contended;

    /* The run that begins nodes while steps are limited; NULL for none. */
    const size_t *first_stepper;
    /* Another one, while nodes_free is above 0; NULL for none. */
    const size_t *second_stepper;
    /* When the second one last received something or began a node. */
    apr_time_t second_stepped_at;
    /* A run was refused a step since steps are limited. */
    bool is_step_refused;
    /* The nodes that runs with a large state execute now. */
    int nodes;
    /* The number of nodes for which there is memory besides; may be negative.
     */
    int nodes_free;
    /* nodes_free was 0 or less when it was set. */
    bool had_no_room;
} runner_pending_t;

/* Sets the pending bytes of a run to value; bytes is a member of the run. */
void runner_pending_set(runner_pending_t *pending, size_t *bytes, size_t value,
                        apr_time_t now);

/* Whether the run must not receive more now; may choose it as the receiver. */
bool runner_pending_is_paused(runner_pending_t *pending, const size_t *bytes,
                              apr_time_t now);

/* Whether a run with a large state may begin a node. While steps are limited
 * this is the first run that asks, until runner_pending_end_run(), and while
 * nodes_free is above 0 a second one, which is replaced when it has received
 * nothing for a second. */
bool runner_pending_may_step(runner_pending_t *pending, const size_t *bytes,
                             apr_time_t now);

/* Count a node of a run with a large state, when it begins and when it ends. */
void runner_pending_begin_node(runner_pending_t *pending);
void runner_pending_end_node(runner_pending_t *pending);

/*
 * Sets the limits from the bytes that all runs take and the most that they may
 * take together when they begin: receiving is limited from there on, steps from
 * 5/4 of it, and nodes may take up to 7/4. True when a run that was refused a
 * step may begin a node now.
 */
bool runner_pending_set_memory(runner_pending_t *pending, size_t used,
                               size_t memory_max);

/* Forgets a run that is over; true when it was one of the two that begin nodes.
 */
bool runner_pending_end_run(runner_pending_t *pending, const size_t *bytes);

/* When a run that waits may replace the receiver or the second stepper;
 * AGENT_CLOCK_NEVER when no run waits, or one may already. */
apr_time_t runner_pending_wake_at(const runner_pending_t *pending,
                                  apr_time_t now);

#endif
