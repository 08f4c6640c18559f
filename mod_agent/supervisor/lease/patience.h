/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of output alone that fails for reasons that may be outside of it: it
 * is tried again later and later, so that the output of others is saved, until
 * it has failed for so long that it is the reason.
 */
#ifndef AGENT_SUPERVISOR_PATIENCE_H
#define AGENT_SUPERVISOR_PATIENCE_H

#include <stdbool.h>

#include <apr_time.h>

/* An attempt counts for the time since the last one, at most this. */
#define AGENT_PATIENCE_ATTEMPT apr_time_from_sec(30)
/* How many times as long it may fail while no such output of others is saved.
 */
#define AGENT_PATIENCE_MOST 12

/* Times: core/clock.h; 0: it has not failed yet. */
typedef struct agent_patience_t {
    int failures;
    apr_time_t first_at;
    apr_time_t last_at;
    /* How long it failed while output of others was saved that needs as much.
     */
    apr_interval_time_t beside_others;
    /* The last failure was a shortage of resources: it may be sent earlier. */
    bool is_shortage;
} agent_patience_t;

/* A statement about one run alone, other than with its output, that fails;
 * ../statement/retry.h has the rule. */
typedef struct agent_retry_t {
    /* Failures that count by their number, and lost connections. */
    int failures;
    agent_patience_t losses;
    /* When the last attempt was sent, if it may have crashed the database and
     * is not counted for that; else 0. */
    apr_time_t crash_since;
    /* Not sent again before (core/clock.h). */
    apr_time_t retry_at;
} agent_retry_t;

/*
 * Lines that were saved lately. A failure counts only if one with about the
 * cost of the line that fails, or more, was saved since the last failure: a
 * disk without room, or little memory, may do for output that needs less. Costs
 * are told apart by powers of two.
 */
#define AGENT_PATIENCE_COSTS 32
typedef struct agent_patience_saved_t {
    /* Number i: when a line with a cost of 2^i or more was saved last. */
    apr_time_t at[AGENT_PATIENCE_COSTS];
} agent_patience_saved_t;

/* Takes a line that was saved. cost: batch_size.h. */
void agent_patience_save(agent_patience_saved_t *saved, apr_size_t cost,
                         apr_time_t now);

/* Takes a failure of a line. saved: the output of others. Returns whether the
 * line has failed for `limit` while such output was saved, or for
 * AGENT_PATIENCE_MOST times as long. */
bool agent_patience_fail(agent_patience_t *patience,
                         const agent_patience_saved_t *saved, apr_size_t cost,
                         apr_time_t now, apr_interval_time_t limit);

#endif
