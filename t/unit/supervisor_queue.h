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
    agent_save_t save;
} queue_t;

static inline queue_t *make_queue(apr_pool_t *pool)
{
    queue_t *q = apr_pcalloc(pool, sizeof(*q));

    q->fixture = make_fixture(pool);
    q->fixture->runs->context->now = NOW;
    q->batches = &q->fixture->runs->batches;
    q->worker = (agent_worker_t){.context = q->fixture->runs->context,
                                 .state = AGENT_WORKER_LIVE};
    q->output.context = q->fixture->runs->context;
    q->output.connection = 1;
    q->save = (agent_save_t){.worker = &q->worker,
                             .runs = q->fixture->runs,
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

#endif
