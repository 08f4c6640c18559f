/* SPDX-License-Identifier: Apache-2.0 */
/* Runs; see run.h. */
#include "run.h"

#include <apr_strings.h>

#include "values.h"

static const agent_statement_t find_run_thread = {
    .name = "agent_find_run_thread",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body from agent.find_run_thread($1, $2)"};

apr_status_t agent_run_find_thread(const char **thread_id, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->run_id};

    return agent_db_pool_call(thread_id, db, &find_run_thread, params, err,
                              pool);
}

static const agent_statement_t find_checkpoint_event = {
    .name = "agent_find_checkpoint_event",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body from agent.find_checkpoint_event($1, $2, $3, "
           "$4)"};

apr_status_t agent_run_find_checkpoint_event(
    apr_int64_t *seq, agent_db_pool_t *db, const agent_run_ref_t *ref,
    const char *checkpoint_id, agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, ref->run_id,
                            checkpoint_id};
    const char *body;
    apr_status_t rv = agent_db_pool_call(&body, db, &find_checkpoint_event,
                                         params, err, pool);

    if (rv == APR_SUCCESS) {
        *seq = apr_atoi64(body);
    }
    return rv;
}

static const agent_statement_t get_run = {
    .name = "agent_get_run",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body from agent.get_run($1, $2, $3, $4)"};

apr_status_t agent_run_get(agent_page_t *page, agent_db_pool_t *db,
                           const agent_run_ref_t *ref, const char *max_bytes,
                           agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, ref->run_id,
                            max_bytes};

    if (max_bytes == NULL) {
        page->body = apr_pstrcat(pool, "{", ref->run_id, "}", NULL);
        return APR_SUCCESS;
    }
    return agent_db_pool_call(&page->body, db, &get_run, params, err, pool);
}

static const agent_statement_t list_runs = {
    .name = "agent_list_runs",
    .params = 8,
    .is_repeatable = true,
    .sql = "select code, body, next from agent.list_runs($1, $2, $3, $4, $5, "
           "$6, $7, $8)"};

apr_status_t agent_run_list(agent_page_t *page, agent_db_pool_t *db,
                            const agent_run_ref_t *ref,
                            const agent_run_filter_t *filter,
                            agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id,
                            ref->thread_id,
                            apr_itoa(pool, filter->limit),
                            apr_itoa(pool, filter->offset),
                            filter->status,
                            agent_db_text_array(filter->select, pool),
                            filter->max_bytes,
                            filter->max_bytes == NULL ? "t" : "f"};

    return agent_db_pool_call_extra(&page->body, &page->next, db, &list_runs,
                                    params, err, pool);
}

static const agent_statement_t delete_run = {
    .name = "agent_delete_run",
    .params = 4,
    .sql = "select code, body, changed from agent.delete_run($1, $2, $3, $4)"};

apr_status_t agent_run_delete(const char **cursor, const char **changed,
                              agent_db_pool_t *db, const agent_run_ref_t *ref,
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, ref->run_id,
                            *cursor};

    return agent_db_pool_call_extra(cursor, changed, db, &delete_run, params,
                                    err, pool);
}

static const agent_statement_t cancel_run = {
    .name = "agent_cancel_run",
    .params = 5,
    .is_repeatable = true,
    .sql = "select code, body, changed from agent.cancel_run($1, $2, $3, $4, "
           "$5)"};

apr_status_t agent_run_cancel(const char **changed, agent_db_pool_t *db,
                              const agent_run_ref_t *ref,
                              const agent_run_cancel_t *cancel,
                              agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, ref->run_id,
                            cancel->action, cancel->reason};
    const char *body;

    return agent_db_pool_call_extra(&body, changed, db, &cancel_run, params,
                                    err, pool);
}

static const agent_statement_t cancel_runs = {
    .name = "agent_cancel_runs",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body, changed from agent.cancel_runs($1, $2, $3, $4)"};

apr_status_t agent_run_cancel_many(const char **changed, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   const char *const *run_ids, int *count,
                                   const char *action, agent_error_t **err,
                                   apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id,
                            agent_db_array(run_ids, (apr_size_t)*count, pool),
                            action};
    const char *body;
    apr_status_t rv = agent_db_pool_call_extra(&body, changed, db, &cancel_runs,
                                               params, err, pool);

    if (rv == APR_SUCCESS) {
        *count = (int)apr_atoi64(body);
    }
    return rv;
}

static const agent_statement_t cancel_runs_by_status = {
    .name = "agent_cancel_runs_by_status",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body, changed from agent.cancel_runs_by_status($1, "
           "$2, $3, $4)"};

apr_status_t agent_run_cancel_by_status(const char **changed,
                                        const char **before,
                                        agent_db_pool_t *db,
                                        const char *deployment_id,
                                        const char *status, const char *action,
                                        agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {deployment_id, status, action, *before};

    return agent_db_pool_call_extra(before, changed, db, &cancel_runs_by_status,
                                    params, err, pool);
}

static const agent_statement_t join_run = {
    .name = "agent_join_run",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body, cursor from agent.join_run($1, $2, $3, $4)"};

apr_status_t agent_run_join(const char **body, const char **cursor,
                            agent_db_pool_t *db, const agent_run_ref_t *ref,
                            agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, ref->run_id,
                            AGENT_VALUES_LIMIT};

    return agent_db_pool_call_extra(body, cursor, db, &join_run, params, err,
                                    pool);
}

static const agent_statement_t read_events = {
    .name = "agent_read_events",
    .params = 7,
    .is_repeatable = true,
    .sql = "select seq, event, data, status, more, cursor from "
           "agent.read_events($1, $2, $3, $4, $5, $6, $7)"};

apr_status_t agent_run_read_events(agent_db_result_t **events,
                                   agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   apr_int64_t after, int limit,
                                   const char *const *names,
                                   agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {
        ref->deployment_id,    ref->thread_id,
        ref->run_id,           apr_psprintf(pool, "%" APR_INT64_T_FMT, after),
        apr_itoa(pool, limit), agent_db_text_array(names, pool),
        AGENT_VALUES_LIMIT};
    apr_status_t rv = agent_db_pool_query(events, db, &read_events, params, err,
                                          pool);

    if (rv == APR_SUCCESS && agent_db_rows(*events) == 1
        && agent_db_value(*events, 0, AGENT_RUN_EVENT_SEQ) == NULL) {
        return agent_error_set(err, AGENT_E_RUN_NOT_FOUND, NULL, NULL, pool);
    }
    return rv;
}
