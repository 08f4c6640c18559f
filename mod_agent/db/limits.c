/* SPDX-License-Identifier: Apache-2.0 */
/* The statement that stores the limits of accounts; see limits.h. */
#include "limits.h"

#include <apr_strings.h>

const agent_statement_t agent_db_set_limits = {
    .name = "agent_set_limits",
    .params = AGENT_DB_LIMITS_PARAMS,
    .sql = "select replaced from agent.set_limits($1, $2, $3)"};

void agent_db_limits_fill(const char *params[AGENT_DB_LIMITS_PARAMS],
                          const agent_stored_limits_t *limits, apr_pool_t *pool)
{
    params[0] = limits->text;
    params[1] = limits->generation.id;
    params[2] = apr_psprintf(pool, "%" APR_INT64_T_FMT,
                             agent_generation_age_ms(&limits->generation));
}

bool agent_db_limits_report(const agent_db_result_t *result,
                            const agent_log_t *log, apr_pool_t *pool)
{
    /* Bounded: the limits of httpd.conf. */
    for (int row = 0; row < agent_db_rows(result); row++) {
        const char *replaced = agent_db_value(result, row, 0);

        if (replaced == NULL) {
            return false;
        }
        log->write(log->baton, AGENT_LOG_WARNING, "AGT0413", 0,
                   apr_pstrcat(pool, "AgentLimit: ", replaced,
                               " in the database", NULL));
    }
    return true;
}
