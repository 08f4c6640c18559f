/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much output one statement saves: as much as the database executed in
 * AGENT_PACE_AIM before, without its commit. It needs 1,000 times longer for
 * some lines than for others of the same length, so each run has a measured
 * limit, and the shared batches have one. Output is measured by weight: its
 * bytes, and a constant for each line.
 */
#ifndef AGENT_SUPERVISOR_PACE_H
#define AGENT_SUPERVISOR_PACE_H

#include <stdbool.h>

#include <apr_time.h>

/* The time that a statement should take. */
#define AGENT_PACE_AIM apr_time_from_msec(250)
/* The weight of a line besides its bytes. */
#define AGENT_PACE_LINE ((apr_size_t)8 * 1024)
/* Limits of a weight: of output that was not measured yet; the least without a
 * failure, since a commit takes a while however little is saved; the most. */
#define AGENT_PACE_FIRST ((apr_size_t)128 * 1024)
#define AGENT_PACE_LEAST ((apr_size_t)64 * 1024)
#define AGENT_PACE_MOST  ((apr_size_t)8 * 1024 * 1024)

/* A statement of several lines may take four times as long. */
#define AGENT_PACE_LONGEST (4 * AGENT_PACE_AIM)

typedef struct agent_pace_t {
    /* Weight of the next statement; 0: nothing was measured yet. */
    apr_size_t limit;
    /* A line alone took longer than AGENT_PACE_LONGEST: so may the next one,
     * which is sent alone. */
    bool needs_long_limit;
    /* The lines of the run are in dedicated batches (core/clock.h). */
    apr_time_t dedicated_until;
} agent_pace_t;

/* The weight of lines of that length together, newlines included. */
apr_size_t agent_pace_weigh(int lines, apr_size_t bytes);

/* Weight of the next statement; a single line may have more. */
apr_size_t agent_pace_limit(const agent_pace_t *pace);

/* A statement that saved that weight took that time: the limit becomes the
 * weight for which AGENT_PACE_AIM would do, but at most doubles. */
void agent_pace_save(agent_pace_t *pace, apr_size_t weight,
                     apr_interval_time_t elapsed);

/* It failed after that time: the limit becomes at most half of the weight, down
 * to a single line. Up to AGENT_PACE_LEAST it then grows slowly. */
void agent_pace_fail(agent_pace_t *pace, apr_size_t weight,
                     apr_interval_time_t elapsed);

/* Whether a shared batch of that weight took so long that runs with that part
 * of it need dedicated batches, */
bool agent_pace_is_slow(apr_size_t part, apr_size_t weight,
                        apr_interval_time_t elapsed);

/* in which they stay for some seconds from now on. */
void agent_pace_dedicate(agent_pace_t *pace, apr_time_t now);

/* Whether lines of the run need dedicated batches now. */
bool agent_pace_is_dedicated(const agent_pace_t *pace, apr_time_t now);

/* A dedicated batch was saved: a run that needs dedicated batches needs them
 * longer, unless its output has become much cheaper. */
void agent_pace_extend(agent_pace_t *pace, apr_size_t weight,
                       apr_interval_time_t elapsed, apr_time_t now);

#endif
