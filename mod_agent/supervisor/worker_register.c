/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the start to the first lease: dead predecessors on this host are
 * buried, so that their runs need not wait for a lease to end, then this
 * process registers. And the way out: burying ourselves.
 */
#include "worker.h"

#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "state.h"

/* bury_worker releases so many runs in one call. */
#define BURY_BATCH 100

void agent_worker_init(agent_supervisor_t *sv)
{
    apr_pool_create(&sv->worker.pool, sv->pool);
    sv->worker.dead = apr_array_make(sv->worker.pool, 4, sizeof(char *));
}

static void add_dead(agent_supervisor_t *sv, const char *worker_id)
{
    APR_ARRAY_PUSH(sv->worker.dead, const char *) = apr_pstrdup(sv->worker.pool,
                                                                worker_id);
}

static apr_int64_t read_number(const agent_db_result_t *result, int row,
                               int column)
{
    const char *text = agent_db_value(result, row, column);

    return text != NULL ? apr_strtoi64(text, NULL, 10) : 0;
}

/* ---- predecessors ---- */

static apr_time_t due_list(agent_supervisor_t *sv)
{
    return sv->worker.state == AGENT_WORKER_NEW
            && sv->mode == AGENT_MODE_RUNNING
        ? sv->worker.retry_at
        : AGENT_NEVER;
}

static apr_status_t send_list(agent_supervisor_t *sv,
                              agent_database_t *database, agent_error_t **err)
{
    const char *params[1] = {sv->config->node_name};

    return agent_db_send(database->db, AGENT_SQL_LIST_NODE_WORKERS, params, err,
                         database->scratch);
}

/*
 * Our own pid: a registration whose answer was lost. What another boot has
 * left was buried before we registered first; who came since is another
 * machine, and to bury each other would never end.
 */
static bool is_predecessor(agent_supervisor_t *sv, const char *id,
                           const char *boot, pid_t pid, apr_int64_t start)
{
    const agent_worker_t *worker = &sv->worker;

    if (*worker->id != '\0'
        && !agent_process_same_boot(worker->boot_id, boot)) {
        agent_report_write(sv, AGENT_LOG_WARNING, "AGT0327", 0,
                           "worker %s is of another machine that has our name "
                           "%s: AgentNode must differ",
                           id, sv->config->node_name);
        return false;
    }
    return (pid == getpid() && strcmp(boot, worker->boot_id) == 0)
        || agent_process_is_gone(worker->boot_id, boot, pid, start);
}

static void receive_list(agent_supervisor_t *sv,
                         const agent_db_result_t *result)
{
    agent_worker_t *worker = &sv->worker;

    apr_pool_clear(worker->pool);
    worker->dead = apr_array_make(worker->pool, 4, sizeof(char *));
    for (int row = 0; row < agent_db_rows(result); row++) {
        const char *id = agent_db_value(result, row, 0);
        const char *boot = agent_db_value(result, row, 1);
        pid_t pid = (pid_t)read_number(result, row, 2);

        if (is_predecessor(sv, id, boot, pid, read_number(result, row, 3))) {
            agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0321", 0,
                               "worker %s of this host (process %d) is gone: "
                               "releasing its runs",
                               id, (int)pid);
            add_dead(sv, id);
        }
    }
    worker->state = worker->dead->nelts > 0 ? AGENT_WORKER_BURYING
                                            : AGENT_WORKER_REGISTERING;
}

static void fail_setup(agent_supervisor_t *sv, agent_failure_t failure)
{
    sv->worker.retry_at = agent_database_retry_at(sv, failure);
}

const agent_operation_t agent_list_operation = {
    "list_node_workers", due_list, send_list, receive_list, fail_setup};

/* ---- burying ---- */

static apr_time_t due_bury(agent_supervisor_t *sv)
{
    return sv->worker.state == AGENT_WORKER_BURYING ? sv->worker.retry_at
                                                    : AGENT_NEVER;
}

static apr_status_t send_bury(agent_supervisor_t *sv,
                              agent_database_t *database, agent_error_t **err)
{
    agent_worker_t *worker = &sv->worker;
    const char *params[2];

    params[0] = APR_ARRAY_IDX(worker->dead, 0, const char *);
    /* What died took its runs with it; what we leave on purpose did not. */
    params[1] = strcmp(params[0], worker->id) == 0 ? "false" : "true";
    return agent_db_send(database->db, AGENT_SQL_BURY_WORKER, params, err,
                         database->scratch);
}

static void receive_bury(agent_supervisor_t *sv,
                         const agent_db_result_t *result)
{
    agent_worker_t *worker = &sv->worker;

    agent_release_tell(sv, result);
    if (agent_db_rows(result) >= BURY_BATCH) {
        return;
    }
    for (int i = 1; i < worker->dead->nelts; i++) {
        APR_ARRAY_IDX(worker->dead, i - 1, const char *) = APR_ARRAY_IDX(
            worker->dead, i, const char *);
    }
    worker->dead->nelts--;
    if (worker->dead->nelts == 0) {
        worker->state = sv->mode == AGENT_MODE_RUNNING
            ? AGENT_WORKER_REGISTERING
            : AGENT_WORKER_LEFT;
    }
}

const agent_operation_t agent_bury_operation = {
    "bury_worker", due_bury, send_bury, receive_bury, fail_setup};

void agent_worker_leave(agent_supervisor_t *sv)
{
    agent_worker_t *worker = &sv->worker;

    if (worker->state == AGENT_WORKER_LIVE) {
        worker->dead->nelts = 0;
        add_dead(sv, worker->id);
        worker->state = AGENT_WORKER_BURYING;
        worker->retry_at = sv->now;
        worker->is_in_doubt = false;
    }
    else {
        worker->state = AGENT_WORKER_LEFT;
    }
}

/* ---- registering ---- */

static apr_time_t due_register(agent_supervisor_t *sv)
{
    return sv->worker.state == AGENT_WORKER_REGISTERING
            && sv->mode == AGENT_MODE_RUNNING
        ? sv->worker.retry_at
        : AGENT_NEVER;
}

static apr_status_t send_register(agent_supervisor_t *sv,
                                  agent_database_t *database,
                                  agent_error_t **err)
{
    const agent_supervisor_config_t *config = sv->config;
    apr_pool_t *pool = database->scratch;
    const char *params[7];

    sv->worker.sent_at = sv->now;
    params[0] = config->node_name;
    params[1] = sv->worker.boot_id;
    params[2] = apr_itoa(pool, (int)getpid());
    params[3] = apr_psprintf(pool, "%" APR_INT64_T_FMT,
                             agent_process_start_time(getpid()));
    params[4] = apr_itoa(pool, config->runners * config->slots);
    params[5] = apr_itoa(pool, config->lease_sec);
    params[6] = sv->claim.graph_ids;
    return agent_db_send(database->db, AGENT_SQL_REGISTER_WORKER, params, err,
                         pool);
}

static void receive_register(agent_supervisor_t *sv,
                             const agent_db_result_t *result)
{
    agent_worker_t *worker = &sv->worker;
    const char *id = agent_db_rows(result) == 1 ? agent_db_value(result, 0, 0)
                                                : NULL;

    if (id == NULL) {
        worker->retry_at = agent_database_after(sv, apr_time_from_sec(1));
        return;
    }
    apr_cpystrn(worker->id, id, sizeof(worker->id));
    worker->state = AGENT_WORKER_LIVE;
    worker->renewed_at = worker->sent_at;
    worker->renew_at = worker->sent_at
        + apr_time_from_sec(sv->config->lease_sec) / 4;
    worker->sweep_at = sv->now;
    worker->partitions_at = sv->now;
    agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0320", 0,
                       "registered as worker %s of host %s", worker->id,
                       sv->config->node_name);
    agent_claim_wake(sv);
}

const agent_operation_t agent_register_operation = {
    "register_worker", due_register, send_register, receive_register,
    fail_setup};
