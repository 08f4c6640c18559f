/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and their state; see thread.h. */
#include "thread.h"

#include <apr_strings.h>

apr_status_t agent_thread_create(const char **body, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *if_exists, const char *request,
                                 agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id, if_exists,
                            request};

    return agent_db_pool_call(body, db, AGENT_SQL_CREATE_THREAD, params, err,
                              pool);
}

apr_status_t agent_thread_get(const char **body, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, agent_error_t **err,
                              apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id};

    return agent_db_pool_call(body, db, AGENT_SQL_GET_THREAD, params, err,
                              pool);
}

apr_status_t agent_thread_delete(const char **changed, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id};
    const char *body;

    return agent_db_pool_call_extra(&body, changed, db, AGENT_SQL_DELETE_THREAD,
                                    params, err, pool);
}

apr_status_t agent_thread_state(const char **body, agent_db_pool_t *db,
                                const agent_run_ref_t *ref,
                                const char *checkpoint_id, agent_error_t **err,
                                apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id, checkpoint_id};

    return agent_db_pool_call(body, db, AGENT_SQL_GET_STATE, params, err, pool);
}

apr_status_t agent_thread_end(agent_thread_cursor_t *cursor,
                              const char **run_id, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, agent_error_t **err,
                              apr_pool_t *pool)
{
    const char *params[] = {ref->account_id, ref->thread_id};
    const char *body;
    apr_status_t rv = agent_db_pool_call_extra(
        &body, run_id, db, AGENT_SQL_FIND_THREAD_END, params, err, pool);

    if (rv == APR_SUCCESS && !agent_thread_cursor_read(cursor, body)) {
        return agent_error_set(err, AGENT_E_INTERNAL, NULL,
                               "a function answered a bad cursor", pool);
    }
    return rv;
}

static const char *print_number(apr_int64_t number, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" APR_INT64_T_FMT, number);
}

apr_status_t agent_thread_events(agent_db_result_t **events,
                                 agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const agent_thread_cursor_t *after, int limit,
                                 const char *const *names, agent_error_t **err,
                                 apr_pool_t *pool)
{
    const char *params[] = {ref->account_id,
                            ref->thread_id,
                            print_number(after->run, pool),
                            print_number(after->seq, pool),
                            apr_itoa(pool, limit),
                            agent_db_list(names, pool)};
    apr_status_t rv = agent_db_pool_query(
        events, db, AGENT_SQL_READ_THREAD_EVENTS, params, err, pool);

    if (rv == APR_SUCCESS && agent_db_rows(*events) == 1
        && agent_db_value(*events, 0, AGENT_THREAD_EVENT_ID) == NULL) {
        return agent_error_set(err, AGENT_E_THREAD_NOT_FOUND, NULL, NULL, pool);
    }
    return rv;
}
