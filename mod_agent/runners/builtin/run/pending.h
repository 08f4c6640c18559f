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
/* The growth of a run in a node: an answer of a model, or the replies of all
 * tools, and the messages made from them. */
#define RUNNER_PENDING_NODE ((size_t)8 * 1024 * 1024)
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
    /* The bytes of the run that begins nodes while memory is scarce, and of a
     * second one, while there is memory for its nodes; NULL for none. When the
     * second last received or began something. */
    const size_t *stepper;
    const size_t *second;
    apr_time_t stepped_at;
    /* Nodes of grown runs under way; how many more there is memory for, and
     * whether there was none when that was set. */
    int nodes;
    int nodes_free;
    bool was_full;
    /* A run has asked in vain since memory is scarce. */
    bool is_step_refused;
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

/* Whether a run that has grown may begin a node. While memory is scarce these
 * are the first one that asks, until runner_pending_end(), and while nodes_free
 * is above 0 a second one, which is replaced when it is silent for a second. */
bool runner_pending_may_step(runner_pending_t *pending, const size_t *bytes,
                             apr_time_t now);

/* A node of a run that has grown begins, and ends. */
void runner_pending_begin_node(runner_pending_t *pending);
void runner_pending_end_node(runner_pending_t *pending);

/* Sets nodes_free from the memory that runs may take yet; true when a run that
 * was refused may begin a node now. */
bool runner_pending_set_room(runner_pending_t *pending, size_t bytes);

/* The run is over; true when it was one of those that began nodes. */
bool runner_pending_end(runner_pending_t *pending, const size_t *bytes);

/* When a paused run may replace the receiver, or a refused one the second;
 * AGENT_CLOCK_NEVER when none waits, or it may already. */
apr_time_t runner_pending_wake_at(const runner_pending_t *pending,
                                  apr_time_t now);

#endif
