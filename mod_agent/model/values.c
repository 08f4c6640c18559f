/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are read in parts; see values.h. */
#include "values.h"

#include <apr_strings.h>

static const agent_statement_t read_values = {
    .name = "agent_read_values",
    .params = 4,
    .is_repeatable = true,
    .sql = "select code, body, cursor from agent.read_values($1, $2, $3, $4)"};

apr_status_t agent_values_read(const char **part, const char **next,
                               agent_db_pool_t *db, const agent_run_ref_t *ref,
                               const char *cursor, apr_size_t bytes,
                               agent_error_t **err, apr_pool_t *pool)
{
    const char *params[] = {ref->deployment_id, ref->thread_id, cursor,
                            apr_psprintf(pool, "%" APR_SIZE_T_FMT, bytes)};

    return agent_db_pool_call_extra(part, next, db, &read_values, params, err,
                                    pool);
}
