/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: one SQL function each.
 *
 * *body receives the response as PostgreSQL built it, in pool. Ids are lower
 * case UUIDs. Errors are those of the SQL function and of agent_db_pool_call().
 * *changed, where there is one, receives the ids of the thread and the runs
 * that whoever waits for them should look at, separated by spaces; NULL for
 * none.
 */
#ifndef AGENT_MODEL_RUN_H
#define AGENT_MODEL_RUN_H

#include "../db/pool.h"
#include "ref.h"

/* Which runs of a thread, and what of them. */
typedef struct agent_run_filter_t {
    int limit;
    int offset;
    /* NULL = any. */
    const char *status;
    /* NULL-terminated names of fields; NULL = all. */
    const char *const *select;
} agent_run_filter_t;

/* The thread that a run belongs to. */
apr_status_t agent_run_find_thread(const char **thread_id, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   agent_error_t **err, apr_pool_t *pool);

apr_status_t agent_run_get(const char **body, agent_db_pool_t *db,
                           const agent_run_ref_t *ref, agent_error_t **err,
                           apr_pool_t *pool);

/*
 * Runs of the thread ids[1], the newest first: as many as filter->limit says,
 * or as fit some 16 MB, but at least one. *next receives the offset of those
 * that follow, NULL when there are none.
 */
apr_status_t agent_run_list(const char **body, const char **next,
                            agent_db_pool_t *db, const agent_run_ref_t *ref,
                            const agent_run_filter_t *filter,
                            agent_error_t **err, apr_pool_t *pool);

apr_status_t agent_run_delete(const char **changed, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, agent_error_t **err,
                              apr_pool_t *pool);

/* action: interrupt or rollback. */
apr_status_t agent_run_cancel(const char **changed, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, const char *action,
                              agent_error_t **err, apr_pool_t *pool);

/* Runs of one thread; run_ids is NULL-terminated. RUN_NOT_FOUND when none of
 * them is there. */
apr_status_t agent_run_cancel_many(const char **changed, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   const char *const *run_ids,
                                   const char *action, agent_error_t **err,
                                   apr_pool_t *pool);

/*
 * Up to 100 unfinished runs with ids below *before, the latest first; *before
 * becomes the last one's, to go on from. status: pending, running or all.
 * RUN_NOT_FOUND when there are no more.
 */
apr_status_t agent_run_cancel_some(const char **changed, const char **before,
                                   agent_db_pool_t *db, const char *account_id,
                                   const char *status, const char *action,
                                   agent_error_t **err, apr_pool_t *pool);

/*
 * The final values of a run; APR_EAGAIN while it has not finished.
 * ids, here and above: account, thread, run.
 */
apr_status_t agent_run_join(const char **body, agent_db_pool_t *db,
                            const agent_run_ref_t *ref, agent_error_t **err,
                            apr_pool_t *pool);

/* Columns of agent_run_events(). */
enum {
    AGENT_RUN_EVENT_SEQ,
    AGENT_RUN_EVENT_NAME,
    AGENT_RUN_EVENT_DATA,
    AGENT_RUN_EVENT_STATUS,
    AGENT_RUN_EVENT_MORE
};

/*
 * All that a stream of a run needs at one look, in one statement: its events
 * after a number, and its end.
 *
 * Rows in order, each with its number (SEQ). NAME and DATA: send it. NAME NULL
 * and STATUS NULL: nothing to send, but the cursor is at SEQ now. STATUS
 * set: everything is sent and the run is final; this is the last row. MORE "t"
 * (last row only): there is more, ask again at once. No rows: wait.
 *
 * names: NULL-terminated names of the events wanted, NULL for all; the others
 * cost no memory and the cursor passes over them. limit: events looked at; a
 * result also ends near 64 KB of data, so that a slow reader holds no more.
 * When the retention has dropped events after the number, an event `gap`
 * ({run_id, after, last}) stands for them, then the run's state as `values`,
 * and `error` or `feedback` if it had one: these come whatever names says.
 * Errors: RUN_NOT_FOUND.
 */
apr_status_t agent_run_events(agent_db_result_t **events, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, apr_int64_t after,
                              int limit, const char *const *names,
                              agent_error_t **err, apr_pool_t *pool);

#endif
