/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a page, in parts; see page.h. */
#include "page.h"

#include <apr_strings.h>

apr_status_t agent_page_query(agent_page_t *page, agent_db_pool_t *db,
                              const agent_statement_t *statement,
                              const char *const *params, agent_error_t **err,
                              apr_pool_t *pool)
{
    agent_db_result_t *result = NULL;
    apr_status_t rv = agent_db_pool_query(&result, db, statement, params, err,
                                          pool);

    if (rv == APR_SUCCESS) {
        rv = agent_db_read_code(&page->body, result, err, pool);
    }
    if (rv == APR_SUCCESS) {
        page->next = agent_db_value(result, 0, 2);
        page->total = agent_db_value(result, 0, 3);
    }
    return rv;
}

static const agent_statement_t read_page = {
    .name = "agent_read_page",
    .params = 8,
    .is_repeatable = true,
    .sql = "select code, body, cursor from agent.read_page($1, $2, $3, $4, $5, "
           "$6, $7, $8)"};

apr_status_t agent_page_read(const char **part, const char **next,
                             agent_db_pool_t *db,
                             const agent_page_records_t *records,
                             const char *cursor, apr_size_t bytes,
                             agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {records->deployment_id,
                            records->kind,
                            records->parent_id,
                            records->keys,
                            agent_db_text_array(records->select, pool),
                            records->request,
                            cursor,
                            apr_psprintf(pool, "%" APR_SIZE_T_FMT, bytes)};

    return agent_db_pool_call_extra(part, next, db, &read_page, params, err,
                                    pool);
}
