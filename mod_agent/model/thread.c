/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and their state; see thread.h. */
#include "thread.h"

#include <apr_strings.h>

#include "values.h"

static const agent_statement_t create_thread = {
    .name = "agent_create_thread",
    .params = 5,
    .sql = "select code, body from agent.create_thread($1, $2, $3, $4, $5)"};

apr_status_t agent_thread_create(const char **body, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *if_exists, const char *ttl,
                                 const char *request, agent_error_t **err,
                                 apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, if_exists,
                            request, ttl};

    return agent_db_pool_call(body, db, &create_thread, params, err, pool);
}

static const agent_statement_t get_thread = {
    .name = "agent_get_thread",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body, cursor from agent.get_thread($1, $2, $3, $4)"};

apr_status_t agent_thread_get(const char **body, const char **cursor,
                              agent_db_pool_t *db, const agent_run_ref_t *ref,
                              bool has_ttl, agent_error_t **err,
                              apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id,
                            AGENT_VALUES_LIMIT, has_ttl ? "t" : "f"};

    return agent_db_pool_call_extra(body, cursor, db, &get_thread, params, err,
                                    pool);
}

static const agent_statement_t get_storage = {
    .name = "agent_get_thread_storage",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body from agent.get_thread_storage($1, $2, $3)"};

apr_status_t agent_thread_get_storage(agent_page_t *page, agent_db_pool_t *db,
                                      const agent_run_ref_t *ref,
                                      const char *max_bytes,
                                      agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, max_bytes};

    return agent_db_pool_call(&page->body, db, &get_storage, params, err, pool);
}

static const agent_statement_t search_threads = {
    .name = "agent_search_threads",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body, next, total from agent.search_threads($1, $2, "
           "$3, $4)"};

apr_status_t agent_thread_search(agent_page_t *page, agent_db_pool_t *db,
                                 const char *deployment_id, const char *request,
                                 const char *max_bytes, agent_error_t **err,
                                 apr_pool_t *pool)
{
    const char *params[] = {deployment_id, request, max_bytes,
                            max_bytes == NULL ? "t" : "f"};

    return agent_page_query(page, db, &search_threads, params, err, pool);
}

static const agent_statement_t count_threads = {
    .name = "agent_count_threads",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body from agent.count_threads($1, $2, $3)"};

apr_status_t agent_thread_count(agent_page_t *page, agent_db_pool_t *db,
                                const char *deployment_id, const char *request,
                                const char *max_bytes, agent_error_t **err,
                                apr_pool_t *pool)
{
    const char *params[] = {deployment_id, request, max_bytes};

    return agent_db_pool_call(&page->body, db, &count_threads, params, err,
                              pool);
}

static const agent_statement_t update_thread = {
    .name = "agent_update_thread",
    .params = 4,
    .sql = "select code, body, cursor from agent.update_thread($1, $2, $3, "
           "$4)"};

apr_status_t agent_thread_update(const char **body, const char **cursor,
                                 agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *request, agent_error_t **err,
                                 apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, request,
                            AGENT_VALUES_LIMIT};

    return agent_db_pool_call_extra(body, cursor, db, &update_thread, params,
                                    err, pool);
}

static const agent_statement_t delete_thread = {
    .name = "agent_delete_thread",
    .params = 3,
    .sql = "select code, body, changed from agent.delete_thread($1, $2, $3)"};

apr_status_t agent_thread_delete(const char **changed, bool *more,
                                 agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id,
                            *more ? "true" : "false"};
    const char *body;
    apr_status_t rv = agent_db_pool_call_extra(
        &body, changed, db, &delete_thread, params, err, pool);

    *more = rv == APR_SUCCESS && body != NULL;
    return rv;
}

static const agent_statement_t prune_thread = {
    .name = "agent_prune_thread",
    .params = 3,
    .sql = "select code, body from agent.prune_thread($1, $2, $3)"};

apr_status_t agent_thread_prune(const char **cursor, agent_db_pool_t *db,
                                const agent_run_ref_t *ref, agent_error_t **err,
                                apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, *cursor};

    return agent_db_pool_call(cursor, db, &prune_thread, params, err, pool);
}

static const agent_statement_t get_state = {
    .name = "agent_get_state",
    .params = 5,
    .is_repeatable = true,
    .sql = "select code, body, cursor from agent.get_state($1, $2, $3, $4, "
           "$5)"};

apr_status_t agent_thread_get_state(const char **body, const char **cursor,
                                    agent_db_pool_t *db,
                                    const agent_run_ref_t *ref,
                                    const char *checkpoint_id,
                                    const char *request, agent_error_t **err,
                                    apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, checkpoint_id,
                            cursor != NULL ? AGENT_VALUES_LIMIT : NULL,
                            request};

    return agent_db_pool_call_extra(body, cursor, db, &get_state, params, err,
                                    pool);
}

apr_status_t agent_thread_get_deep_state(
    agent_page_t *page, agent_db_pool_t *db, const agent_run_ref_t *ref,
    const char *checkpoint_id, const char *request, const char *max_bytes,
    agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, checkpoint_id,
                            max_bytes, request};
    const char *cursor;

    return agent_db_pool_call_extra(&page->body, &cursor, db, &get_state,
                                    params, err, pool);
}

static const agent_statement_t get_history = {
    .name = "agent_get_history",
    .params = 5,
    .is_repeatable = true,
    .sql = "select code, body, next from agent.get_history($1, $2, $3, $4, "
           "$5)"};

apr_status_t agent_thread_get_history(agent_page_t *page, agent_db_pool_t *db,
                                      const agent_run_ref_t *ref,
                                      const char *request,
                                      const char *max_bytes,
                                      agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, request,
                            max_bytes, max_bytes == NULL ? "t" : "f"};

    return agent_db_pool_call_extra(&page->body, &page->next, db, &get_history,
                                    params, err, pool);
}

static const agent_statement_t find_thread_end = {
    .name = "agent_find_thread_end",
    .params = 2,
    .is_repeatable = true,
    .sql = "select code, body, run_id from agent.find_thread_end($1, $2)"};

apr_status_t agent_thread_find_end(agent_thread_cursor_t *cursor,
                                   const char **run_id, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id};
    const char *body;
    apr_status_t rv = agent_db_pool_call_extra(
        &body, run_id, db, &find_thread_end, params, err, pool);

    if (rv == APR_SUCCESS && !agent_thread_cursor_read(cursor, body)) {
        return agent_error_set(err, AGENT_E_INTERNAL, NULL,
                               "a function returned an invalid cursor", pool);
    }
    return rv;
}

static const char *print_number(apr_int64_t number, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" APR_INT64_T_FMT, number);
}

static const agent_statement_t read_thread_events = {
    .name = "agent_read_thread_events",
    .params = 7,
    .is_repeatable = true,
    .sql = "select id, run_id, event, data, status, checkpoint_id, more, "
           "cursor from agent.read_thread_events($1, $2, $3, $4, $5, $6, "
           "$7)"};

apr_status_t agent_thread_read_events(agent_db_result_t **events,
                                      agent_db_pool_t *db,
                                      const agent_run_ref_t *ref,
                                      const agent_thread_cursor_t *after,
                                      int limit, const char *const *names,
                                      agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id,
                            ref->thread_id,
                            print_number(after->run, pool),
                            print_number(after->seq, pool),
                            apr_itoa(pool, limit),
                            agent_db_text_array(names, pool),
                            AGENT_VALUES_LIMIT};
    apr_status_t rv = agent_db_pool_query(events, db, &read_thread_events,
                                          params, err, pool);

    if (rv == APR_SUCCESS && agent_db_rows(*events) == 1
        && agent_db_value(*events, 0, AGENT_THREAD_EVENT_ID) == NULL) {
        return agent_error_set(err, AGENT_E_THREAD_NOT_FOUND, NULL, NULL, pool);
    }
    return rv;
}
