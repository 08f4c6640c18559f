/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs: one SQL function each.
 *
 * *body receives the response as PostgreSQL built it, in pool. Ids are lower
 * case UUIDs. Errors are those of the SQL function and of agent_pool_call().
 */
#ifndef AGENT_MODEL_RUN_H
#define AGENT_MODEL_RUN_H

#include "../db/pool.h"

/* What create run needs besides the body. All texts borrowed. */
typedef struct agent_run_creation_t {
    const char *account_id;
    const char *thread_id;
    const char *run_id;
    const char *assistant_id;
    /* The graph whose own assistant that is; NULL = look it up. */
    const char *graph_id;
    /* NULL-terminated: the graphs this server executes. */
    const char *const *graph_ids;
    /* reject, enqueue, interrupt or rollback. */
    const char *strategy;
    const char *user_id;
    /* NULL = none; then request_hash is NULL too. */
    const char *idempotency_key;
    const char *request_hash;
    /* The body as sent. */
    const char *request;
} agent_run_creation_t;

/* Which runs of a thread, and what of them. */
typedef struct agent_run_filter_t {
    int limit;
    int offset;
    /* NULL = any. */
    const char *status;
    /* NULL-terminated names of fields; NULL = all. */
    const char *const *select;
} agent_run_filter_t;

apr_status_t agent_run_create(const char **body, agent_pool_t *db,
                              const agent_run_creation_t *creation,
                              agent_error_t **err, apr_pool_t *pool);

/* The same on a new hidden thread, which gets creation->thread_id; strategy is
 * not looked at. */
apr_status_t agent_run_create_stateless(const char **body, agent_pool_t *db,
                                        const agent_run_creation_t *creation,
                                        agent_error_t **err, apr_pool_t *pool);

/* The thread that a run belongs to. */
apr_status_t agent_run_find_thread(const char **thread_id, agent_pool_t *db,
                                   const char *account_id, const char *run_id,
                                   agent_error_t **err, apr_pool_t *pool);

apr_status_t agent_run_get(const char **body, agent_pool_t *db,
                           const char *const ids[3], agent_error_t **err,
                           apr_pool_t *pool);

apr_status_t agent_run_list(const char **body, agent_pool_t *db,
                            const char *account_id, const char *thread_id,
                            const agent_run_filter_t *filter,
                            agent_error_t **err, apr_pool_t *pool);

apr_status_t agent_run_delete(agent_pool_t *db, const char *const ids[3],
                              agent_error_t **err, apr_pool_t *pool);

/* action: interrupt or rollback. */
apr_status_t agent_run_cancel(agent_pool_t *db, const char *const ids[3],
                              const char *action, agent_error_t **err,
                              apr_pool_t *pool);

/*
 * The final values of a run; APR_EAGAIN while it has not finished.
 * ids, here and above: account, thread, run.
 */
apr_status_t agent_run_join(const char **body, agent_pool_t *db,
                            const char *const ids[3], agent_error_t **err,
                            apr_pool_t *pool);

/*
 * Whether the run has ended: *last is the number of its last event, -1 for
 * none. APR_EAGAIN while it has not.
 */
apr_status_t agent_run_last_event(apr_int64_t *last, agent_pool_t *db,
                                  const char *const ids[3], agent_error_t **err,
                                  apr_pool_t *pool);

/*
 * At most limit stored events with numbers above after, in order: rows of
 * number, event, data.
 */
apr_status_t agent_run_events(agent_db_result_t **events, agent_pool_t *db,
                              const char *const ids[3], apr_int64_t after,
                              int limit, agent_error_t **err, apr_pool_t *pool);

#endif
