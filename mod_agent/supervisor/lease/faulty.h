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
    /* Id -> faulty, of all deployments whose output failed. */
    apr_hash_t *by_deployment;
    /* When the last mark ends, and the last pause (core/clock.h). */
    apr_time_t until;
    apr_time_t resume_at;
    apr_uint64_t splits; /* shared batches that were split */
} agent_faulty_table_t;

/* The pointer must stay valid as long as the table. */
void agent_faulty_init(agent_faulty_table_t *table,
                       const agent_context_t *context);

/* So many failures within 30 s mark a deployment: refusals, which may be the
 * ordinary end of a run, and others. */
#define AGENT_FAULTY_REFUSALS 3
#define AGENT_FAULTY_FAILURES 2

/* Takes output alone that was slow: the second mark its deployment for 30 s.
 * began_at: of the statement, here and below. */
void agent_faulty_slow(agent_faulty_table_t *table, const char *deployment_id,
                       apr_time_t began_at);

/* Takes output alone that failed. The last one of `count` within 30 s marks its
 * deployment: for 30 s from now, and for twice as long as before, up to an
 * hour, if it does so again soon after a mark has ended. why: for the log. */
void agent_faulty_fail(agent_faulty_table_t *table, const char *deployment_id,
                       apr_time_t began_at, int count, const char *why);

/* Takes output alone that the database refused. It counts once for each shared
 * batch that was split, since otherwise it has delayed no other output, and
 * always while its deployment is marked. */
void agent_faulty_refuse(agent_faulty_table_t *table, const char *deployment_id,
                         apr_time_t began_at, const char *why);

/* Takes output alone, or a request, whose connection was lost by itself: until
 * the connections are there again, and tell why, for 5 minutes at most, its
 * deployment is treated as marked, since each shared batch might be lost too.
 */
void agent_faulty_isolate(agent_faulty_table_t *table,
                          const char *deployment_id);
void agent_faulty_end_isolation(agent_faulty_table_t *table,
                                const char *deployment_id);

/* Whether it is marked or isolated. */
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
