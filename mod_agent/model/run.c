/* SPDX-License-Identifier: Apache-2.0 */
/* Runs; see run.h. */
#include "run.h"

#include <apr_strings.h>

static const char *print_array(const char *const *texts, apr_pool_t *pool)
{
    apr_size_t count = 0;

    if (texts == NULL) {
        return NULL;
    }
    while (texts[count] != NULL) {
        count++;
    }
    return agent_db_array(texts, count, pool);
}

apr_status_t agent_run_create(const char **body, agent_pool_t *db,
                              const agent_run_creation_t *creation,
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {
        creation->account_id,      creation->thread_id,
        creation->run_id,          creation->assistant_id,
        creation->graph_id,        print_array(creation->graph_ids, pool),
        creation->strategy,        creation->user_id,
        creation->idempotency_key, creation->request_hash,
        creation->request};

    return agent_pool_call(body, db, AGENT_SQL_CREATE_RUN, params, err, pool);
}

apr_status_t agent_run_create_stateless(const char **body, agent_pool_t *db,
                                        const agent_run_creation_t *creation,
                                        agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {
        creation->account_id,   creation->thread_id,
        creation->run_id,       creation->assistant_id,
        creation->graph_id,     print_array(creation->graph_ids, pool),
        creation->user_id,      creation->idempotency_key,
        creation->request_hash, creation->request};

    return agent_pool_call(body, db, AGENT_SQL_CREATE_STATELESS_RUN, params,
                           err, pool);
}

apr_status_t agent_run_find_thread(const char **thread_id, agent_pool_t *db,
                                   const char *account_id, const char *run_id,
                                   agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {account_id, run_id};

    return agent_pool_call(thread_id, db, AGENT_SQL_FIND_RUN_THREAD, params,
                           err, pool);
}

apr_status_t agent_run_get(const char **body, agent_pool_t *db,
                           const char *const ids[3], agent_error_t **err,
                           apr_pool_t *pool)
{
    return agent_pool_call(body, db, AGENT_SQL_GET_RUN, ids, err, pool);
}

apr_status_t agent_run_list(const char **body, agent_pool_t *db,
                            const char *account_id, const char *thread_id,
                            const agent_run_filter_t *filter,
                            agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {account_id,
                            thread_id,
                            apr_itoa(pool, filter->limit),
                            apr_itoa(pool, filter->offset),
                            filter->status,
                            print_array(filter->select, pool)};

    return agent_pool_call(body, db, AGENT_SQL_LIST_RUNS, params, err, pool);
}

apr_status_t agent_run_delete(agent_pool_t *db, const char *const ids[3],
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *body;

    return agent_pool_call(&body, db, AGENT_SQL_DELETE_RUN, ids, err, pool);
}

apr_status_t agent_run_cancel(agent_pool_t *db, const char *const ids[3],
                              const char *action, agent_error_t **err,
                              apr_pool_t *pool)
{
    const char *params[] = {ids[0], ids[1], ids[2], action};
    const char *body;

    return agent_pool_call(&body, db, AGENT_SQL_CANCEL_RUN, params, err, pool);
}

apr_status_t agent_run_join(const char **body, agent_pool_t *db,
                            const char *const ids[3], agent_error_t **err,
                            apr_pool_t *pool)
{
    return agent_pool_call(body, db, AGENT_SQL_JOIN_RUN, ids, err, pool);
}

apr_status_t agent_run_last_event(apr_int64_t *last, agent_pool_t *db,
                                  const char *const ids[3], agent_error_t **err,
                                  apr_pool_t *pool)
{
    const char *body = NULL;
    apr_status_t rv = agent_pool_call(&body, db, AGENT_SQL_STREAM_STATE, ids,
                                      err, pool);

    if (rv == APR_SUCCESS) {
        *last = body ? apr_atoi64(body) : -1;
    }
    return rv;
}

apr_status_t agent_run_events(agent_db_result_t **events, agent_pool_t *db,
                              const char *const ids[3], apr_int64_t after,
                              int limit, agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ids[0], ids[1], ids[2],
                            apr_psprintf(pool, "%" APR_INT64_T_FMT, after),
                            apr_itoa(pool, limit)};

    return agent_pool_query(events, db, AGENT_SQL_READ_EVENTS, params, err,
                            pool);
}
