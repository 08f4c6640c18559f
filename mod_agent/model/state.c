/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and updates of a thread's state; see state.h. */
#include "state.h"

#include <apr_strings.h>
#include <apr_tables.h>

/* NULL: all. */
static const char *print_select(const char *const *select, apr_pool_t *pool)
{
    const char *words = NULL;

    /* Bounded: each word of agent_state_fields once. */
    for (int i = 0; select != NULL && select[i] != NULL; i++) {
        words = apr_pstrcat(pool, i == 0 ? "\"" : words, i == 0 ? "" : ",\"",
                            select[i], "\"", NULL);
    }
    return words != NULL ? apr_pstrcat(pool, "\"select\":[", words, "]", NULL)
                         : NULL;
}

const char *agent_state_print_query(const agent_state_query_t *query,
                                    apr_pool_t *pool)
{
    apr_array_header_t *members = apr_array_make(pool, 4, sizeof(char *));
    const char *select = print_select(query->select, pool);

    if (query->subgraphs) {
        APR_ARRAY_PUSH(members, const char *) = "\"subgraphs\":true";
    }
    if (query->limit > 0) {
        APR_ARRAY_PUSH(members, const char *) = apr_psprintf(
            pool, "\"limit\":%d", query->limit);
    }
    if (query->before != NULL) {
        APR_ARRAY_PUSH(members, const char *) = apr_psprintf(
            pool, "\"before\":\"%s\"", query->before);
    }
    if (select != NULL) {
        APR_ARRAY_PUSH(members, const char *) = select;
    }
    return members->nelts > 0 ? apr_pstrcat(
               pool, "{", apr_array_pstrcat(pool, members, ','), "}", NULL)
                              : NULL;
}

const char *agent_state_print_seconds(apr_interval_time_t timeout,
                                      apr_pool_t *pool)
{
    return apr_psprintf(pool, "%" APR_TIME_T_FMT ".%03d", apr_time_sec(timeout),
                        (int)apr_time_msec(timeout));
}

static const agent_statement_t update_state = {
    .name = "agent_update_state",
    .params = 6,
    .sql = "select code, body, changed from agent.update_state($1, $2, $3, $4, "
           "$5, $6)"};

apr_status_t agent_state_update(const char **changed, agent_db_pool_t *db,
                                const agent_run_ref_t *ref, const char *user_id,
                                apr_interval_time_t timeout,
                                const char *request, agent_error_t **err,
                                apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id,
                            ref->thread_id,
                            ref->run_id,
                            user_id,
                            agent_state_print_seconds(timeout, pool),
                            request};
    const char *body;

    return agent_db_pool_call_extra(&body, changed, db, &update_state, params,
                                    err, pool);
}

static const agent_statement_t create_thread_state = {
    .name = "agent_create_thread_state",
    .params = 8,
    .sql = "select code, body, changed from agent.create_thread_state($1, $2, "
           "$3, $4, $5, $6, $7, $8)"};

apr_status_t agent_state_create(const char **body, const char **changed,
                                agent_db_pool_t *db,
                                const agent_state_creation_t *creation,
                                agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {creation->ref->deployment_id,
                            creation->ref->thread_id,
                            creation->ref->run_id,
                            creation->user_id,
                            creation->if_exists,
                            agent_state_print_seconds(creation->timeout, pool),
                            creation->request,
                            creation->ttl};

    return agent_db_pool_call_extra(body, changed, db, &create_thread_state,
                                    params, err, pool);
}

static const agent_statement_t join_call = {
    .name = "agent_join_call",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body from agent.join_call($1, $2, $3)"};

apr_status_t agent_state_join(const char **body, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, agent_error_t **err,
                              apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, ref->run_id};

    return agent_db_pool_call(body, db, &join_call, params, err, pool);
}

static const agent_statement_t end_call = {
    .name = "agent_end_call",
    .params = 3,
    .is_repeatable = true,
    .sql = "select code, body from agent.end_call($1, $2, $3)"};

apr_status_t agent_state_end(const char **body, agent_db_pool_t *db,
                             const agent_run_ref_t *ref, agent_error_t **err,
                             apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, ref->run_id};

    return agent_db_pool_call(body, db, &end_call, params, err, pool);
}
