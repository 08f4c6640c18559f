/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark_worker_dead; see worker.h. It releases the runs of predecessors, of
 * workers whose lease has expired, and of this worker when the supervisor ends.
 * It delays neither registrations nor claims nor renewals, however long it
 * takes or however often it fails.
 */
#include "worker.h"

#include <string.h>

#include <apr_strings.h>

#include "release_runs.h"
#include "retry.h"

/* Runs that one statement releases at most. */
#define MAX_RELEASED 100
/* After this many failures a dead worker is left to the next sweep. */
#define MAX_FAILURES 3

void agent_worker_init(agent_worker_t *worker)
{
    worker->dead = apr_array_make(worker->context->pool, AGENT_DEAD_MAX,
                                  sizeof(agent_dead_t));
    agent_adaptive_limit_init(&worker->dead_limit, MAX_RELEASED);
}

static agent_dead_t *get_dead(const agent_worker_t *worker, int index)
{
    return &APR_ARRAY_IDX(worker->dead, index, agent_dead_t);
}

void agent_worker_add_dead(agent_worker_t *worker, const char *worker_id,
                           bool is_swept)
{
    agent_dead_t *dead;

    for (int i = 0; i < worker->dead->nelts; i++) {
        if (strcmp(get_dead(worker, i)->id, worker_id) == 0) {
            return;
        }
    }
    if (worker->dead->nelts < AGENT_DEAD_MAX) {
        dead = apr_array_push(worker->dead);
        memset(dead, 0, sizeof(*dead));
        apr_cpystrn(dead->id, worker_id, sizeof(dead->id));
        dead->is_swept = is_swept;
        dead->is_counted = true;
    }
}

/* Whether it is this worker's own end: until the time of the supervisor is over
 * the statement is repeated; then other workers release what it has left. */
static bool is_last(const agent_worker_t *worker)
{
    return worker->state == AGENT_WORKER_DEREGISTERING
        && strcmp(get_dead(worker, 0)->id, worker->id) == 0;
}

static apr_time_t due_dead(void *part)
{
    const agent_worker_t *worker = part;

    if (worker->dead->nelts == 0
        || (!is_last(worker)
            && agent_retry_waits_for_control(&worker->dead_retry, worker))) {
        return AGENT_CLOCK_NEVER;
    }
    return worker->dead_at;
}

/* Without a run, fail_run ends the one that mark_worker_dead would release
 * first. */
static apr_status_t send_fail_run(const agent_dead_t *dead,
                                  const agent_fail_run_error_t *error,
                                  agent_database_t *database,
                                  agent_error_t **err)
{
    const char *params[6] = {dead->id, NULL,        NULL,
                             NULL,     error->name, error->message};

    return agent_db_send(database->db, &agent_fail_run, params, err,
                         database->scratch);
}

static const agent_statement_t mark_worker_dead = {
    .name = "agent_mark_worker_dead",
    .params = 3,
    .sql = "select run_id, thread_id, outcome from agent.mark_worker_dead($1, "
           "$2, $3)"};

static apr_status_t send_dead(void *part, agent_database_t *database,
                              agent_error_t **err)
{
    agent_worker_t *worker = part;
    const agent_dead_t *dead = get_dead(worker, 0);
    const char *params[3];

    if (worker->run_error != NULL) {
        return send_fail_run(dead, worker->run_error, database, err);
    }
    params[0] = dead->id;
    params[1] = dead->is_counted ? "true" : "false";
    params[2] = apr_itoa(database->scratch, worker->dead_limit.current);
    return agent_db_send(database->db, &mark_worker_dead, params, err,
                         database->scratch);
}

static void remove_dead(agent_worker_t *worker)
{
    worker->dead_retry = (agent_retry_t){0};
    if (is_last(worker)) {
        worker->state = AGENT_WORKER_DEREGISTERED;
    }
    worker->dead->nelts--;
    memmove(get_dead(worker, 0), get_dead(worker, 1),
            (size_t)worker->dead->nelts * sizeof(agent_dead_t));
    agent_adaptive_limit_init(&worker->dead_limit, MAX_RELEASED);
}

static void report_sweep(agent_worker_t *worker, int count)
{
    if (get_dead(worker, 0)->is_swept && count > 0) {
        agent_report_write(worker->context, AGENT_LOG_NOTICE, "AGT0326", 0,
                           "released %d runs of a worker whose lease had ended",
                           count);
    }
}

static void receive_dead(void *part, const agent_db_result_t *result)
{
    agent_worker_t *worker = part;
    int count = agent_db_rows(result);

    worker->dead_retry = (agent_retry_t){0};
    agent_release_runs_notify(worker->notify, worker->schedule, result);
    agent_schedule_claim_requeued(worker->schedule);
    if (worker->run_error != NULL) {
        worker->run_error = NULL;
        return;
    }
    report_sweep(worker, count);
    if (count < worker->dead_limit.current) {
        remove_dead(worker);
    }
    else {
        agent_adaptive_limit_raise(&worker->dead_limit);
    }
}

/* Its first run can be neither released nor ended: other workers go first. */
static void postpone_dead(agent_worker_t *worker)
{
    agent_dead_t first = *get_dead(worker, 0);
    bool is_last_try = ++first.failures >= MAX_FAILURES;

    remove_dead(worker);
    if (!is_last_try && worker->state == AGENT_WORKER_LIVE) {
        APR_ARRAY_PUSH(worker->dead, agent_dead_t) = first;
    }
}

/* Whether the statement about one run is not to be tried again: at the first
 * failure that counts, or when its connection was lost for long while others
 * of the bulk connection were answered. */
static bool is_given_up(agent_worker_t *worker, agent_failure_t failure)
{
    const agent_patience_saved_t others = {{worker->bulk->answered_at}};
    const agent_retry_statement_t statement = {
        .worker = worker,
        .subject = "the release of a run of worker",
        .id = get_dead(worker, 0)->id,
        .others = &others,
        .cost = 1};
    bool is_over = agent_retry_fail(&worker->dead_retry, &statement, failure);

    worker->dead_at = worker->dead_retry.retry_at;
    return is_over || agent_failure_counts(failure);
}

static void give_up(agent_worker_t *worker, agent_failure_t failure)
{
    if (worker->run_error != NULL) {
        worker->run_error = NULL;
        postpone_dead(worker);
    }
    else if (!is_last(worker)) {
        agent_report_write(worker->context, AGENT_LOG_ERR, "AGT0373", 0,
                           "a run of worker %s could not be released: %s; it "
                           "ends in error",
                           get_dead(worker, 0)->id,
                           agent_failure_cause(failure));
        worker->run_error = agent_fail_run_error(failure);
        worker->dead_retry = (agent_retry_t){0};
    }
}

static void fail_dead(void *part, agent_failure_t failure)
{
    agent_worker_t *worker = part;

    worker->dead_at = agent_database_retry_at(worker->context, failure);
    if (agent_failure_is_transient(failure)) {
        return;
    }
    if (worker->run_error == NULL && worker->dead_limit.current > 1) {
        agent_adaptive_limit_lower(&worker->dead_limit,
                                   worker->dead_limit.current);
        return;
    }
    if (is_given_up(worker, failure)) {
        give_up(worker, failure);
    }
}

const agent_operation_t agent_mark_dead_operation = {
    "mark_worker_dead", due_dead, send_dead, receive_dead, fail_dead};

static bool is_marking_dead(const agent_worker_t *worker)
{
    return worker->bulk->state == AGENT_DATABASE_BUSY
        && worker->bulk->operation == &agent_mark_dead_operation;
}

void agent_worker_count_crash(agent_worker_t *worker)
{
    if (worker->dead->nelts > 0 && !is_marking_dead(worker)
        && agent_retry_count_crash(&worker->dead_retry, worker)) {
        give_up(worker, AGENT_FAILURE_LOST);
    }
}

void agent_worker_deregister(agent_worker_t *worker)
{
    if (worker->state == AGENT_WORKER_LIVE) {
        /* The next sweep finds the others again; the one in flight is kept. */
        worker->dead->nelts = is_marking_dead(worker) ? 1 : 0;
        agent_worker_add_dead(worker, worker->id, false);
        get_dead(worker, worker->dead->nelts - 1)->is_counted = false;
        if (!is_marking_dead(worker)) {
            /* These failures were those of another worker. */
            worker->run_error = NULL;
            worker->dead_retry = (agent_retry_t){0};
            agent_adaptive_limit_init(&worker->dead_limit, MAX_RELEASED);
        }
        worker->state = AGENT_WORKER_DEREGISTERING;
        worker->dead_at = worker->context->now;
    }
    else {
        worker->state = AGENT_WORKER_DEREGISTERED;
    }
}
