/* SPDX-License-Identifier: Apache-2.0 */
/* The statements that save the output of a queue, for tests. */
#ifndef SUPERVISOR_QUEUE_H
#define SUPERVISOR_QUEUE_H

#include "supervisor_batches.h"

#include "../../mod_agent/supervisor/statement/save_failure.h"

#define NOW apr_time_from_sec(1000)

/* The tables, and the statement of a worker that has a lease. */
typedef struct queue_t {
    fixture_t *fixture;
    agent_batch_queue_t *batches;
    agent_worker_t worker;
    agent_database_t control;
    agent_database_t output;
    agent_database_t bulk;
    agent_notify_t notify;
    agent_schedule_t schedule;
    agent_save_t save;
} queue_t;

static inline queue_t *make_queue(apr_pool_t *pool)
{
    queue_t *q = apr_pcalloc(pool, sizeof(*q));

    q->fixture = make_fixture(pool);
    q->fixture->runs->context->now = NOW;
    q->batches = &q->fixture->runs->batches;
    q->worker = (agent_worker_t){.context = q->fixture->runs->context,
                                 .control = &q->control,
                                 .bulk = &q->bulk,
                                 .output = &q->output,
                                 .state = AGENT_WORKER_LIVE};
    q->output.context = q->fixture->runs->context;
    q->output.connection = 1;
    agent_notify_init(&q->notify, q->fixture->runs->context);
    q->schedule.context = q->fixture->runs->context;
    q->schedule.search_at = AGENT_CLOCK_NEVER;
    q->save = (agent_save_t){.worker = &q->worker,
                             .runners = q->fixture->io->runners,
                             .runs = q->fixture->runs,
                             .notify = &q->notify,
                             .schedule = &q->schedule,
                             .control = &q->control,
                             .output = &q->output,
                             .bulk = &q->bulk,
                             .sent_on = &q->output};
    return q;
}

static inline void add(const queue_t *q, int run, apr_size_t length)
{
    char *line = apr_palloc(q->fixture->runs->context->pool, length);

    memset(line, ' ', length);
    line[0] = '{';
    line[length - 1] = '}';
    /* The reply makes its batch due now. */
    agent_batch_add(q->batches, q->fixture->leases[run], AGENT_ITEM_CHECKPOINT,
                    line, length, 1);
}

/* A line for the shared batch. */
static inline void add_short(const queue_t *q, int run)
{
    add(q, run, 100);
}

/* A line for the run's first dedicated batch, or its last one. */
static inline void add_long(const queue_t *q, int run)
{
    add(q, run, AGENT_BATCH_LONG_LINE + 1);
}

static inline bool is_dedicated_due(queue_t *q)
{
    return agent_dedicated_batch_operation.due(&q->save) <= NOW;
}

static inline agent_batch_t *first_of(const queue_t *q)
{
    return first_batch(q->batches);
}

/* The first batch is sent, with the limit that it needs. */
static inline void send_first(queue_t *q)
{
    agent_batch_t *batch = first_of(q);

    batch->retry_at = 0;
    assert_true(is_dedicated_due(q));
    batch->has_long_limit = agent_save_needs_long_limit(
        agent_save_find_lease(q->fixture->runs, batch));
    agent_batch_send_begin(q->batches, batch);
}

/* It fails after that time. (cmocka has a macro fail().) */
static inline void fail_sent(queue_t *q, agent_failure_t failure,
                             apr_interval_time_t used)
{
    agent_context_t *context = q->fixture->runs->context;

    q->control.answered_at = NOW + 1;
    context->now += used;
    (agent_dedicated_batch_operation.fail)(&q->save, failure);
    context->now = NOW;
}

/* It is sent, and fails: at once, or after its limit. */
static inline void fail_first(queue_t *q, agent_failure_t failure)
{
    send_first(q);
    fail_sent(q, failure,
              failure == AGENT_FAILURE_TIMEOUT
                  ? agent_save_limit(q->batches->context, first_of(q))
                  : 0);
}

static inline void ignore_report(void *baton, agent_log_level_t level,
                                 const char *id, apr_status_t rv,
                                 const char *text)
{
}

/* The server has a crash, of which the control connection gets the notice, and
 * is up again: before the next statement is sent. */
static inline void report_crash(queue_t *q)
{
    q->control.crash_reported_at = q->fixture->runs->context->now;
}

/* A queue of which the log is ignored. */
static inline queue_t *make_logged(apr_pool_t *pool)
{
    static const agent_supervisor_config_t config = {
        .log = {ignore_report, NULL}};
    queue_t *q = make_queue(pool);

    q->fixture->runs->context->config = &config;
    return q;
}

#endif
