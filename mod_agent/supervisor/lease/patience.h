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
/* How many times as long it may fail while no output of others is saved. */
#define AGENT_PATIENCE_MOST 12

/* Times: core/clock.h; 0: it has not failed yet. */
typedef struct agent_patience_t {
    int failures;
    apr_time_t first_at;
    apr_time_t last_at;
    /* How long it failed while output of others was saved. */
    apr_interval_time_t beside_others;
    /* The last failure was a shortage of resources: it may be sent earlier. */
    bool is_shortage;
} agent_patience_t;

/* Takes a failure. saved_at: when output of others was saved last. Returns
 * whether the line has failed for `limit` while that was saved, or for
 * AGENT_PATIENCE_MOST times as long. */
bool agent_patience_fail(agent_patience_t *patience, apr_time_t now,
                         apr_time_t saved_at, apr_interval_time_t limit);

#endif
