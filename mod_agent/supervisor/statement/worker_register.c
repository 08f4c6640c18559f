/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_node_workers and register_worker; see worker.h. Before it registers, the
 * supervisor marks workers of this host dead whose process has ended, so that
 * their runs do not wait until the lease expires.
 */
#include "worker.h"

#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

enum { COL_WORKER, COL_BOOT, COL_PID, COL_PID_START };

static apr_time_t due_list(void *part)
{
    const agent_worker_t *worker = part;

    return worker->state == AGENT_WORKER_NEW
            && worker->context->mode == AGENT_MODE_RUNNING
        ? worker->retry_at
        : AGENT_CLOCK_NEVER;
}

static const agent_statement_t list_node_workers = {
    .name = "agent_list_node_workers",
    .params = 1,
    .sql = "select worker_id, host_boot_id, pid, pid_start from "
           "agent.list_node_workers($1)"};

static apr_status_t send_list(void *part, agent_database_t *database,
                              agent_error_t **err)
{
    agent_worker_t *worker = part;
    const char *params[1] = {worker->context->config->node_name};

    return agent_db_send(database->db, &list_node_workers, params, err,
                         database->scratch);
}

/*
 * Our own pid: a registration whose result was lost. Workers of another boot
 * were marked dead before we registered first; one that appears later is
 * another machine, and the two would mark each other dead for ever.
 */
static bool is_predecessor(agent_worker_t *worker, const char *id,
                           const char *boot, pid_t pid, apr_int64_t start)
{
    if (*worker->id != '\0'
        && !agent_process_same_boot(worker->boot_id, boot)) {
        agent_report_write(worker->context, AGENT_LOG_WARNING, "AGT0327", 0,
                           "worker %s is of another machine with the same name "
                           "%s: AgentNode must differ",
                           id, worker->context->config->node_name);
        return false;
    }
    return (pid == getpid() && strcmp(boot, worker->boot_id) == 0)
        || agent_process_is_gone(worker->boot_id, boot, pid, start);
}

static void receive_list(void *part, const agent_db_result_t *result)
{
    agent_worker_t *worker = part;

    for (int row = 0; row < agent_db_rows(result); row++) {
        const char *id = agent_db_value(result, row, COL_WORKER);
        const char *boot = agent_db_value(result, row, COL_BOOT);
        pid_t pid = (pid_t)agent_db_integer(result, row, COL_PID, 0);

        if (is_predecessor(worker, id, boot, pid,
                           agent_db_integer(result, row, COL_PID_START, 0))) {
            agent_report_write(worker->context, AGENT_LOG_NOTICE, "AGT0321", 0,
                               "worker %s of this host (process %d) is gone: "
                               "releasing its runs",
                               id, (int)pid);
            agent_worker_add_dead(worker, id, false);
        }
    }
    worker->state = AGENT_WORKER_REGISTERING;
}

static void fail_setup(void *part, agent_failure_t failure)
{
    agent_worker_t *worker = part;

    worker->retry_at = agent_database_retry_at(worker->context, failure);
}

const agent_operation_t agent_list_operation = {
    "list_node_workers", due_list, send_list, receive_list, fail_setup};

static apr_time_t due_register(void *part)
{
    const agent_worker_t *worker = part;

    return worker->state == AGENT_WORKER_REGISTERING
            && worker->context->mode == AGENT_MODE_RUNNING
        ? worker->retry_at
        : AGENT_CLOCK_NEVER;
}

static const agent_statement_t register_worker = {
    .name = "agent_register_worker",
    .params = 9,
    .sql = "select worker_id, deployment_id from "
           "agent.register_worker($1, $2, $3, $4, $5, $6, $7, $8, $9)"};

/* A property of a graph of the configuration. */
typedef enum member_t {
    MEMBER_DEPLOYMENT,
    MEMBER_NAME,
    MEMBER_ASSISTANT
} member_t;

static const char *get_member(const agent_runner_pool_t *pool, int number,
                              member_t member)
{
    switch (member) {
    case MEMBER_DEPLOYMENT:
        return pool->config->deployment;
    case MEMBER_NAME:
        return pool->config->graph_ids[number];
    case MEMBER_ASSISTANT:
    default:
        return pool->graphs.graphs[number].assistant_id;
    }
}

/* Returns that of each graph of the pools, in their order, as an array literal
 * of PostgreSQL. */
static const char *print_graphs(const agent_runner_table_t *table,
                                member_t member, apr_pool_t *pool)
{
    apr_array_header_t *names = apr_array_make(pool, 8, sizeof(const char *));

    for (int i = 0; i < table->pool_count; i++) {
        for (int k = 0; k < table->pools[i].config->graph_count; k++) {
            APR_ARRAY_PUSH(names, const char *) = get_member(&table->pools[i],
                                                             k, member);
        }
    }
    return agent_db_array((const char *const *)(void *)names->elts,
                          (apr_size_t)names->nelts, pool);
}

static int count_slots(const agent_runner_table_t *table)
{
    int count = 0;

    for (int i = 0; i < table->pool_count; i++) {
        count += table->pools[i].config->runners
            * table->pools[i].config->slots;
    }
    return count;
}

static apr_status_t send_register(void *part, agent_database_t *database,
                                  agent_error_t **err)
{
    agent_worker_t *worker = part;
    const agent_supervisor_config_t *config = worker->context->config;
    apr_pool_t *pool = database->scratch;
    const char *params[9];

    worker->sent_at = worker->context->now;
    params[0] = config->node_name;
    params[1] = worker->boot_id;
    params[2] = apr_itoa(pool, (int)getpid());
    params[3] = apr_psprintf(pool, "%" APR_INT64_T_FMT,
                             agent_process_start_time(getpid()));
    params[4] = apr_itoa(pool, count_slots(worker->runners));
    params[5] = apr_itoa(pool, config->lease_sec);
    params[6] = print_graphs(worker->runners, MEMBER_DEPLOYMENT, pool);
    params[7] = print_graphs(worker->runners, MEMBER_NAME, pool);
    params[8] = print_graphs(worker->runners, MEMBER_ASSISTANT, pool);
    return agent_db_send(database->db, &register_worker, params, err, pool);
}

static int count_graphs(const agent_runner_table_t *table)
{
    int count = 0;

    for (int i = 0; i < table->pool_count; i++) {
        count += table->pools[i].graphs.count;
    }
    return count;
}

/* The id that register_worker returns for a deployment that it does not open.
 */
#define NO_DEPLOYMENT "00000000-0000-0000-0000-000000000000"

static void report_deployment(const agent_worker_t *worker,
                              const agent_runner_pool_t *pool)
{
    if (strcmp(pool->graphs.deployment_id, NO_DEPLOYMENT) == 0) {
        agent_report_write(worker->context, AGENT_LOG_WARNING, "AGT0328", 0,
                           "deployment %s is not served: its account does not "
                           "exist, is closed, or has as many deployments as it "
                           "may (AgentLimit deployments)",
                           pool->config->deployment);
    }
}

/* They change only when another database has taken the place of the first. */
static void keep_deployments(const agent_worker_t *worker,
                             const agent_db_result_t *result)
{
    agent_account_map_t *accounts = &worker->runs->batches.accounts;
    int row = 0;

    agent_account_map_clear(accounts);
    for (int i = 0; i < worker->runners->pool_count; i++) {
        agent_graph_table_t *graphs = &worker->runners->pools[i].graphs;

        apr_cpystrn(graphs->deployment_id, agent_db_value(result, row, 1),
                    sizeof(graphs->deployment_id));
        agent_account_map_set(accounts, graphs->deployment_id,
                              agent_pool_account(&worker->runners->pools[i]));
        report_deployment(worker, &worker->runners->pools[i]);
        row += graphs->count;
    }
}

static void receive_register(void *part, const agent_db_result_t *result)
{
    agent_worker_t *worker = part;
    int graphs = count_graphs(worker->runners);
    /* Without graphs there is one row, with the worker's id. */
    const char *id = agent_db_rows(result) == (graphs > 0 ? graphs : 1)
        ? agent_db_value(result, 0, 0)
        : NULL;

    if (id == NULL) {
        worker->retry_at = agent_database_after(worker->context,
                                                apr_time_from_sec(1));
        return;
    }
    apr_cpystrn(worker->id, id, sizeof(worker->id));
    keep_deployments(worker, result);
    worker->state = AGENT_WORKER_LIVE;
    worker->renewed_at = worker->sent_at;
    worker->renew_at = worker->sent_at + worker->context->timing.renew;
    worker->sweep_at = worker->context->now;
    agent_report_write(worker->context, AGENT_LOG_NOTICE, "AGT0320", 0,
                       "registered as worker %s of host %s", worker->id,
                       worker->context->config->node_name);
    agent_schedule_claim(worker->schedule);
}

const agent_operation_t agent_register_operation = {
    "register_worker", due_register, send_register, receive_register,
    fail_setup};
