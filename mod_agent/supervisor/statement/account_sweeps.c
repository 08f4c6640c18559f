/* SPDX-License-Identifier: Apache-2.0 */
/* end_full_runs, sweep_accounts, sweep_api_keys, sweep_audit_log,
 * count_accounts and measure_accounts; see account_sweeps.h. */
#include "account_sweeps.h"

#include <apr_strings.h>

#include "sweep.h"

/* ---- runs of accounts that may not store more ---- */

static const char *const *make_worker(const agent_sweep_t *sweep,
                                      apr_pool_t *pool)
{
    const char **params = apr_palloc(pool, sizeof(*params));

    params[0] = sweep->worker->id;
    return params;
}

/* The runners are asked to stop them when their output is not stored. */
static void receive_full(void *part, const agent_db_result_t *result)
{
    agent_sweep_t *sweep = part;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_notify_add(sweep->notify, agent_db_value(result, row, 0),
                         agent_db_value(result, row, 1), true);
    }
    if (agent_db_rows(result) > 0) {
        agent_sweep_repeat(sweep);
    }
}

/* ---- the audit log ---- */

static const char *const *make_retention(const agent_sweep_t *sweep,
                                         apr_pool_t *pool)
{
    const char **params = apr_palloc(pool, sizeof(*params));

    params[0] = apr_psprintf(
        pool, "%d days", sweep->worker->context->config->audit_retention_days);
    return params;
}

static const agent_sweep_kind_t kinds[] = {
    {AGENT_SWEEP("sweep_accounts"),
     .statement.sql = "select agent.sweep_accounts()"},
    {AGENT_SWEEP("sweep_api_keys"),
     .statement.sql = "select agent.sweep_api_keys()"},
    {AGENT_SWEEP("sweep_audit_log"),
     .statement.sql = "select agent.sweep_audit_log($1)", .statement.params = 1,
     .make_params = make_retention},
    {AGENT_SWEEP("count_accounts"),
     .statement.sql = "select agent.count_accounts()"},
    {AGENT_SWEEP("measure_accounts"),
     .statement.sql = "select agent.measure_accounts()"},
    {AGENT_SWEEP_OTHER("end_full_runs", receive_full, agent_sweep_retry),
     .statement.sql = "select run_id, thread_id from agent.end_full_runs($1)",
     .statement.params = 1, .make_params = make_worker}};

void agent_account_sweeps_add(agent_database_t *database,
                              const agent_worker_t *worker,
                              agent_notify_t *notify)
{
    agent_sweep_add(database, worker, notify, kinds,
                    sizeof(kinds) / sizeof(kinds[0]));
}
