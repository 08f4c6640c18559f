/* SPDX-License-Identifier: Apache-2.0 */
/* release_runs and fail_run; see release_runs.h. */
#include "release_runs.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../base/order.h"
#include "../runner/run/run_end.h"
#include "fail_run.h"
#include "retry.h"

/* Longest pause between two attempts to end it in error. */
#define MAX_PAUSE apr_time_from_sec(60)

/* Columns of the statements that release runs. */
enum { COL_RUN, COL_THREAD, COL_OUTCOME };

/* Whether it can be sent; *next becomes the time at which one that failed is
 * due again, if that is earlier. A release that waits for a batch becomes due
 * when that is saved. */
static bool is_due(const agent_release_runs_t *statement,
                   const agent_release_t *release, apr_time_t *next)
{
    return !agent_retry_waits(&release->retry, statement->worker, next)
        && !agent_batch_has_run(&statement->runs->batches, release->key.run_id);
}

static agent_release_t *find_due(const agent_release_runs_t *statement,
                                 apr_time_t *next)
{
    agent_release_t *release;

    AGENT_RING_EACH(release, &statement->runs->releases.waiting,
                    agent_release_t, link)
    {
        if (is_due(statement, release, next)) {
            return release;
        }
    }
    return NULL;
}

static apr_time_t due_release(void *part)
{
    const agent_release_runs_t *statement = part;
    apr_time_t next = AGENT_CLOCK_NEVER;

    if (!agent_worker_is_live(statement->worker)) {
        return AGENT_CLOCK_NEVER;
    }
    return find_due(statement, &next) != NULL ? statement->runs->context->now
                                              : next;
}

/* Whether a release can be in the same statement as the first one. */
static bool can_join(const agent_release_runs_t *statement,
                     const agent_release_t *first,
                     const agent_release_t *release)
{
    apr_time_t next = AGENT_CLOCK_NEVER;

    return release->error == NULL && release->is_counted == first->is_counted
        && release->max_shared == first->max_shared
        && strcmp(release->reason, first->reason) == 0
        && is_due(statement, release, &next);
}

static apr_status_t send_fail_run(agent_release_runs_t *statement,
                                  agent_release_t *release,
                                  agent_database_t *database,
                                  agent_error_t **err)
{
    const char *params[6];

    release->is_sent = true;
    statement->runs->releases.in_flight = 1;
    params[0] = statement->worker->id;
    params[1] = release->deployment_id;
    params[2] = apr_pstrmemdup(database->scratch, release->key.run_id, 36);
    params[3] = apr_itoa(database->scratch, (int)release->key.epoch);
    params[4] = release->error;
    params[5] = release->reason;
    return agent_db_send(database->db, &agent_fail_run, params, err,
                         database->scratch);
}

static const agent_statement_t release_runs = {
    .name = "agent_release_runs",
    .params = 5,
    .sql = "select run_id, thread_id, outcome from agent.release_runs($1, $2, "
           "$3, $4, $5)"};

static apr_status_t send_several(agent_release_runs_t *statement,
                                 const agent_release_t *first,
                                 agent_database_t *database,
                                 agent_error_t **err)
{
    agent_release_queue_t *queue = &statement->runs->releases;
    const char *params[5];
    agent_buffer_t items;
    agent_release_t *release;
    int count = 0;

    agent_buffer_init(&items, database->scratch);
    AGENT_RING_EACH(release, &queue->waiting, agent_release_t, link)
    {
        release->is_sent = count < queue->limit.current
            && can_join(statement, first, release);
        if (release->is_sent) {
            agent_lease_print(&items, &release->key, release->deployment_id);
            count++;
        }
    }
    agent_buffer_append(&items, "]", 2);
    queue->in_flight = count;
    params[0] = statement->worker->id;
    params[1] = agent_buffer_text(&items);
    params[2] = first->is_counted ? "true" : "false";
    params[3] = first->reason;
    params[4] = first->max_shared != 0
        ? apr_itoa(database->scratch, first->max_shared)
        : NULL;
    return agent_db_send(database->db, &release_runs, params, err,
                         database->scratch);
}

static apr_status_t send_release(void *part, agent_database_t *database,
                                 agent_error_t **err)
{
    agent_release_runs_t *statement = part;
    apr_time_t next = AGENT_CLOCK_NEVER;
    agent_release_t *first = find_due(statement, &next);

    if (first == NULL) {
        /* due_release() has found one. */
        abort();
    }
    return first->error != NULL ? send_fail_run(statement, first, database, err)
                                : send_several(statement, first, database, err);
}

void agent_release_runs_notify(agent_notify_t *notify,
                               agent_schedule_t *schedule,
                               const agent_db_result_t *released)
{
    for (int row = 0; row < agent_db_rows(released); row++) {
        if (strcmp(agent_db_value(released, row, COL_OUTCOME), "requeued")
            != 0) {
            agent_notify_add(notify, agent_db_value(released, row, COL_RUN),
                             agent_db_value(released, row, COL_THREAD), true);
            agent_schedule_webhooks(schedule);
        }
    }
}

static void receive_release(void *part, const agent_db_result_t *result)
{
    agent_release_runs_t *statement = part;
    agent_runs_t *runs = statement->runs;
    agent_release_queue_t *queue = &runs->releases;
    agent_release_t *release;
    agent_release_t *next;

    for (int row = 0; row < agent_db_rows(result); row++) {
        agent_report_write(runs->context, AGENT_LOG_INFO, "AGT0346", 0,
                           "run %s released: %s",
                           agent_db_value(result, row, COL_RUN),
                           agent_db_value(result, row, COL_OUTCOME));
    }
    agent_release_runs_notify(statement->notify, statement->schedule, result);
    agent_adaptive_limit_raise(&queue->limit);
    agent_patience_save(&statement->released, 1, runs->context->now);
    AGENT_RING_EACH_SAFE(release, next, &queue->waiting, agent_release_t, link)
    {
        agent_lease_t *lease;

        if (!release->is_sent) {
            continue;
        }
        if (release->is_repeated) {
            release->is_sent = release->is_repeated = false;
            continue;
        }
        lease = agent_lease_find(&runs->leases, &release->key);
        if (lease != NULL) {
            agent_run_end_set_state(runs, lease, AGENT_LEASE_GONE);
        }
        agent_release_remove(queue, release);
    }
    agent_schedule_claim_requeued(statement->schedule);
}

/* The statement was to end the run. */
static void pause_end(agent_runs_t *runs, agent_release_t *release)
{
    apr_interval_time_t pause = apr_time_from_sec(release->retry.failures)
        * release->retry.failures;

    release->retry.retry_at = runs->context->now + AGENT_MIN(pause, MAX_PAUSE);
}

static void give_up(const agent_runs_t *runs, agent_release_t *release,
                    agent_failure_t failure)
{
    const agent_fail_run_error_t *error = agent_fail_run_error(failure);

    agent_report_write(runs->context, AGENT_LOG_ERR, "AGT0372", 0,
                       "run %.36s could not be released: %s; it ends in error",
                       release->key.run_id, agent_failure_cause(failure));
    release->error = error->name;
    release->reason = error->message;
    release->retry = (agent_retry_t){0};
}

static void count_failure(agent_release_runs_t *statement,
                          agent_release_t *release, agent_failure_t failure)
{
    const agent_retry_statement_t failed = {.worker = statement->worker,
                                            .subject = "the release of run",
                                            .id = release->key.run_id,
                                            .others = &statement->released,
                                            .cost = 1};
    bool is_over = agent_retry_fail(&release->retry, &failed, failure);

    if (release->error == NULL && is_over) {
        give_up(statement->runs, release, failure);
    }
    else if (release->error != NULL && agent_failure_counts(failure)) {
        pause_end(statement->runs, release);
    }
}

static void fail_release(void *part, agent_failure_t failure)
{
    agent_release_runs_t *statement = part;
    agent_runs_t *runs = statement->runs;
    agent_release_queue_t *queue = &runs->releases;
    bool is_transient = agent_failure_is_transient(failure);
    bool is_alone = queue->in_flight == 1;
    agent_release_t *release;
    agent_release_t *next;

    if (!is_transient) {
        agent_adaptive_limit_lower(&queue->limit, queue->in_flight);
    }
    AGENT_RING_EACH_SAFE(release, next, &queue->waiting, agent_release_t, link)
    {
        if (release->is_sent) {
            release->is_sent = release->is_repeated = false;
            release->retry.retry_at = agent_database_retry_at(runs->context,
                                                              failure);
            if (!is_transient && is_alone) {
                count_failure(statement, release, failure);
                /* It is tried again after the others. */
                APR_RING_REMOVE(release, link);
                APR_RING_INSERT_TAIL(&queue->waiting, release, agent_release_t,
                                     link);
                return;
            }
        }
    }
}

void agent_release_runs_on_connected(agent_release_runs_t *statement)
{
    agent_release_t *release;

    AGENT_RING_EACH(release, &statement->runs->releases.waiting,
                    agent_release_t, link)
    {
        if (release->error == NULL && !release->is_sent
            && agent_retry_count_crash(&release->retry, statement->worker)) {
            give_up(statement->runs, release, AGENT_FAILURE_LOST);
        }
    }
}

const agent_operation_t agent_release_runs_operation = {
    "release_runs", due_release, send_release, receive_release, fail_release};
