/* SPDX-License-Identifier: Apache-2.0 */
/* Runs; see run.h. */
#include "run.h"

#include <apr_strings.h>

apr_status_t agent_run_find_thread(const char **thread_id, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->run_id};

    return agent_db_pool_call(thread_id, db, AGENT_SQL_FIND_RUN_THREAD, params,
                              err, pool);
}

apr_status_t agent_run_get(const char **body, agent_db_pool_t *db,
                           const agent_run_ref_t *ref, agent_error_t **err,
                           apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id, ref->run_id};

    return agent_db_pool_call(body, db, AGENT_SQL_GET_RUN, params, err, pool);
}

apr_status_t agent_run_list(const char **body, const char **next,
                            agent_db_pool_t *db, const agent_run_ref_t *ref,
                            const agent_run_filter_t *filter,
                            agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->account_id,
                            ref->thread_id,
                            apr_itoa(pool, filter->limit),
                            apr_itoa(pool, filter->offset),
                            filter->status,
                            agent_db_list(filter->select, pool)};

    return agent_db_pool_call_extra(body, next, db, AGENT_SQL_LIST_RUNS, params,
                                    err, pool);
}

apr_status_t agent_run_delete(const char **changed, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, agent_error_t **err,
                              apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id, ref->run_id};
    const char *body;

    return agent_db_pool_call_extra(&body, changed, db, AGENT_SQL_DELETE_RUN,
                                    params, err, pool);
}

apr_status_t agent_run_cancel(const char **changed, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, const char *action,
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id, ref->run_id,
                            action};
    const char *body;

    return agent_db_pool_call_extra(&body, changed, db, AGENT_SQL_CANCEL_RUN,
                                    params, err, pool);
}

apr_status_t agent_run_cancel_many(const char **changed, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   const char *const *run_ids,
                                   const char *action, agent_error_t **err,
                                   apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id,
                            agent_db_list(run_ids, pool), action};
    const char *body;

    return agent_db_pool_call_extra(&body, changed, db, AGENT_SQL_CANCEL_RUNS,
                                    params, err, pool);
}

apr_status_t agent_run_cancel_some(const char **changed, const char **before,
                                   agent_db_pool_t *db, const char *account_id,
                                   const char *status, const char *action,
                                   agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {account_id, status, action, *before};

    return agent_db_pool_call_extra(before, changed, db,
                                    AGENT_SQL_CANCEL_RUNS_BY_STATUS, params,
                                    err, pool);
}

apr_status_t agent_run_join(const char **body, agent_db_pool_t *db,
                            const agent_run_ref_t *ref, agent_error_t **err,
                            apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id, ref->run_id};

    return agent_db_pool_call(body, db, AGENT_SQL_JOIN_RUN, params, err, pool);
}

apr_status_t agent_run_events(agent_db_result_t **events, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, apr_int64_t after,
                              int limit, const char *const *names,
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {
        ref->account_id,       ref->thread_id,
        ref->run_id,           apr_psprintf(pool, "%" APR_INT64_T_FMT, after),
        apr_itoa(pool, limit), agent_db_list(names, pool)};
    apr_status_t rv = agent_db_pool_query(events, db, AGENT_SQL_READ_EVENTS,
                                          params, err, pool);

    if (rv == APR_SUCCESS && agent_db_rows(*events) == 1
        && agent_db_value(*events, 0, AGENT_RUN_EVENT_SEQ) == NULL) {
        return agent_error_set(err, AGENT_E_RUN_NOT_FOUND, NULL, NULL, pool);
    }
    return rv;
}
