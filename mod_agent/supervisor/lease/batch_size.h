/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much output one statement saves: as much as the database executed in
 * AGENT_BATCH_SIZE_TARGET before, without its commit. It needs 1,000 times
 * longer for some lines than for others of the same length, so each run has a
 * measured limit, and the shared batches have one. The estimated cost of output
 * is its bytes, and a constant for each line.
 */
#ifndef AGENT_SUPERVISOR_BATCH_SIZE_H
#define AGENT_SUPERVISOR_BATCH_SIZE_H

#include <stdbool.h>

#include <apr_time.h>

/* The time that a statement should take. */
#define AGENT_BATCH_SIZE_TARGET apr_time_from_msec(250)
/* A statement of several lines is cancelled after four times as long. */
#define AGENT_BATCH_SIZE_TIMEOUT (4 * AGENT_BATCH_SIZE_TARGET)
/* The cost of a line besides its bytes. */
#define AGENT_BATCH_SIZE_LINE ((apr_size_t)8 * 1024)
/* Limits of a cost: the first one, of output that was not measured yet; the
 * least without a failure, since a commit takes a while however little is
 * saved; the largest one. A shared batch takes AGENT_BATCH_SIZE_SHARED_MIN, 63
 * short lines, whatever was measured: runs with costly lines have dedicated
 * batches. */
#define AGENT_BATCH_SIZE_FIRST      ((apr_size_t)128 * 1024)
#define AGENT_BATCH_SIZE_MIN        ((apr_size_t)64 * 1024)
#define AGENT_BATCH_SIZE_MAX        ((apr_size_t)8 * 1024 * 1024)
#define AGENT_BATCH_SIZE_SHARED_MIN ((apr_size_t)512 * 1024)

typedef struct agent_batch_size_t {
    /* The cost of the next statement; 0: nothing was measured yet. */
    apr_size_t limit;
    /* A line alone took longer than AGENT_BATCH_SIZE_TIMEOUT: so may the next
     * one, which is sent alone. */
    bool needs_long_limit;
    /* Statements that waited for a lock since one was saved: the next one waits
     * only briefly, since the lock may be this run's. */
    int lock_waits;
    /* A statement with this number of lines crashed the database: they are sent
     * alone, and fewer are left. */
    int lines_alone;
    /* The lines of the run are in dedicated batches (core/clock.h). */
    apr_time_t dedicated_until;
} agent_batch_size_t;

/* Returns the cost of several lines of `bytes` together, newlines included. */
apr_size_t agent_batch_size_cost(int lines, apr_size_t bytes);

/* Returns the cost of the next statement; a single line may have more. */
apr_size_t agent_batch_size_limit(const agent_batch_size_t *size);

/* Sets the limit after a statement of `cost` that took `elapsed`: to the cost
 * for which AGENT_BATCH_SIZE_TARGET would do, but at most to twice as much as
 * before. */
void agent_batch_size_save(agent_batch_size_t *size, apr_size_t cost,
                           apr_interval_time_t elapsed);

/* Sets the limit after a statement of `cost` that failed after `elapsed`: to at
 * most half of the cost, down to a single line. Up to AGENT_BATCH_SIZE_MIN the
 * limit then grows slowly. */
void agent_batch_size_fail(agent_batch_size_t *size, apr_size_t cost,
                           apr_interval_time_t elapsed);

/* Limits the next statements, as many as the lines of one during which its
 * process of the database crashed, to a single line each. */
void agent_batch_size_crash(agent_batch_size_t *size, int lines);

/* Whether a shared batch of `cost` delayed others and a run, or a deployment,
 * with `part` of the cost was the reason. */
bool agent_batch_size_is_slow(apr_size_t part, apr_size_t cost,
                              apr_interval_time_t elapsed);

/* Lines of the run are in dedicated batches for 5 s. */
void agent_batch_size_dedicate(agent_batch_size_t *size, apr_time_t now);

bool agent_batch_size_is_dedicated(const agent_batch_size_t *size,
                                   apr_time_t now);

/* Called when a dedicated batch was saved: lines of the run stay in dedicated
 * batches for another 5 s, unless its output has become much cheaper. */
void agent_batch_size_extend(agent_batch_size_t *size, apr_size_t cost,
                             apr_interval_time_t elapsed, apr_time_t now);

#endif
