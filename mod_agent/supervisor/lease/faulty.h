/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deployments whose output fails, or is slow: it is kept out of the shared
 * batches, which would fail with it, and it is sent less often while it ends
 * connections, so that those of others last.
 */
#ifndef AGENT_SUPERVISOR_FAULTY_H
#define AGENT_SUPERVISOR_FAULTY_H

#include <stdbool.h>

#include <apr_hash.h>

#include "../base/context.h"

typedef struct agent_faulty_table_t {
    const agent_context_t *context;
    /* Id -> faulty, of all deployments that were marked. */
    apr_hash_t *by_deployment;
    /* When the last mark ends, and the last pause (core/clock.h). */
    apr_time_t until;
    apr_time_t resume_at;
} agent_faulty_table_t;

/* The pointer must stay valid as long as the table. */
void agent_faulty_init(agent_faulty_table_t *table,
                       const agent_context_t *context);

/* Marks a deployment whose output alone was slow, for 30 s. */
void agent_faulty_mark_slow(agent_faulty_table_t *table,
                            const char *deployment_id);

/* Marks a deployment whose output alone failed: for 30 s, and for twice as long
 * as before, up to an hour, if it does so again soon after a mark has ended.
 * why: for the log. */
void agent_faulty_mark(agent_faulty_table_t *table, const char *deployment_id,
                       const char *why);

bool agent_faulty_is(const agent_faulty_table_t *table,
                     const char *deployment_id);

/*
 * Its output, or a request of it, ended the connections for `lost`: it pauses
 * for as long, twice as long the next time, and so on up to 16 times as long,
 * until its mark ends. Without a crash of the database a second counts at most:
 * that may have been restarted. No effect without a mark.
 */
void agent_faulty_pause(agent_faulty_table_t *table, const char *deployment_id,
                        apr_interval_time_t lost, bool has_crashed);

/* Returns when its output may be sent; 0: at once. */
apr_time_t agent_faulty_resume_at(const agent_faulty_table_t *table,
                                  const char *deployment_id);

#endif
