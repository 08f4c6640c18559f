/* SPDX-License-Identifier: Apache-2.0 */
/* report_failing_graphs; see failing.h. */
#include "failing.h"

#include <string.h>

/* Other workers come and go. */
#define INTERVAL apr_time_from_sec(5)

enum { COL_DEPLOYMENT, COL_GRAPH };

static bool is_any_failing(const agent_runner_table_t *runners)
{
    for (int i = 0; i < runners->pool_count; i++) {
        if (agent_pool_is_failing(&runners->pools[i])) {
            return true;
        }
    }
    return false;
}

static apr_time_t due_failing(void *part)
{
    const agent_failing_t *failing = part;

    return agent_worker_is_live(failing->worker)
            && (failing->is_stored || is_any_failing(failing->runners))
        ? failing->due_at
        : AGENT_CLOCK_NEVER;
}

static const agent_statement_t report_failing_graphs = {
    .name = "agent_report_failing_graphs",
    .params = 3,
    .sql = "select deployment_id, graph_id from "
           "agent.report_failing_graphs($1, $2, $3)"};

static const char *print_array(const apr_array_header_t *values,
                               apr_pool_t *pool)
{
    return agent_db_array((const char *const *)(void *)values->elts,
                          (apr_size_t)values->nelts, pool);
}

static apr_status_t send_failing(void *part, agent_database_t *database,
                                 agent_error_t **err)
{
    agent_failing_t *failing = part;
    apr_pool_t *pool = database->scratch;
    apr_array_header_t *ids = apr_array_make(pool, 8, sizeof(const char *));
    apr_array_header_t *names = apr_array_make(pool, 8, sizeof(const char *));
    const char *params[3];

    for (int i = 0; i < failing->runners->pool_count; i++) {
        const agent_runner_pool_t *of = &failing->runners->pools[i];

        for (int k = 0; agent_pool_is_failing(of) && k < of->graphs.count;
             k++) {
            APR_ARRAY_PUSH(ids, const char *) = of->graphs.deployment_id;
            APR_ARRAY_PUSH(names, const char *) = of->graphs.graphs[k].name;
        }
    }
    failing->is_stored = ids->nelts > 0;
    params[0] = failing->worker->id;
    params[1] = print_array(ids, pool);
    params[2] = print_array(names, pool);
    return agent_db_send(database->db, &report_failing_graphs, params, err,
                         pool);
}

/* Sets has[] of the graphs of the pool that rows name; returns how many. */
static int find_graphs(bool *has, const agent_runner_pool_t *pool,
                       const agent_db_result_t *result)
{
    int count = 0;

    for (int row = 0; row < agent_db_rows(result); row++) {
        int graph = strcmp(agent_db_value(result, row, COL_DEPLOYMENT),
                           pool->graphs.deployment_id)
                == 0
            ? agent_graphs_find(&pool->graphs,
                                agent_db_value(result, row, COL_GRAPH))
            : -1;

        if (graph >= 0) {
            has[graph] = true;
            count++;
        }
    }
    return count;
}

static void set_failing(agent_runner_pool_t *pool,
                        const agent_db_result_t *result, apr_pool_t *scratch)
{
    bool *has = apr_pcalloc(scratch,
                            (apr_size_t)pool->graphs.count * sizeof(*has));
    int count = find_graphs(has, pool, result);

    agent_graphs_release(pool->failing_set);
    pool->failing_set = count > 0 ? agent_graphs_take_set(&pool->graphs, has)
                                  : NULL;
    agent_pool_request_claim(pool);
}

static void receive_failing(void *part, const agent_db_result_t *result)
{
    agent_failing_t *failing = part;
    apr_pool_t *scratch;

    failing->due_at = agent_database_after(failing->worker->context, INTERVAL);
    apr_pool_create(&scratch, failing->worker->context->pool);
    for (int i = 0; i < failing->runners->pool_count; i++) {
        agent_runner_pool_t *pool = &failing->runners->pools[i];

        /* One may have started in the meantime. */
        if (agent_pool_is_failing(pool)) {
            set_failing(pool, result, scratch);
        }
    }
    apr_pool_destroy(scratch);
}

static void fail_failing(void *part, agent_failure_t failure)
{
    agent_failing_t *failing = part;

    failing->is_stored = true;
    failing->due_at = agent_database_retry_at(failing->worker->context,
                                              failure);
}

const agent_operation_t agent_failing_operation = {
    "report_failing_graphs", due_failing, send_failing, receive_failing,
    fail_failing};
