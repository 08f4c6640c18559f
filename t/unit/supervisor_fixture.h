/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's tables with two runners, without processes. */
#ifndef SUPERVISOR_FIXTURE_H
#define SUPERVISOR_FIXTURE_H

#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/supervisor/lease/batch_move.h"
#include "../../mod_agent/supervisor/lease/batch_split.h"
#include "../../mod_agent/supervisor/runner/io/io.h"
#include "../../mod_agent/supervisor/runner/run/runs.h"

/* Bytes of a long line. */
#define BIG ((apr_size_t)8 * 1024 * 1024)
/* Runs of the first runner. */
#define RUNS 9

typedef struct fixture_t {
    agent_runs_t *runs;
    agent_runner_io_t *io;
    agent_runner_t *runner;
    agent_lease_t *leases[RUNS];
    /* The only run of a second runner. */
    agent_lease_t *other;
} fixture_t;

/* A runner of a pool, and a deployment, of its own. */
static inline agent_runner_t *make_runner(agent_runner_table_t *table,
                                          apr_pool_t *pool)
{
    agent_runner_t *runner = apr_pcalloc(pool, sizeof(*runner));

    runner->runner_pool = apr_pcalloc(pool, sizeof(*runner->runner_pool));
    agent_pool_init(runner->runner_pool, &table->lists);
    APR_RING_INIT(&runner->runner_pool->runners, agent_runner_t, pool_link);
    agent_runner_link(table, runner);
    runner->in.fd = runner->out.fd = runner->log_out.fd = -1;
    agent_lease_group_init(&runner->group, runner, 0);
    agent_buffer_init(&runner->input, pool);
    runner->pong_by = AGENT_CLOCK_NEVER;
    return runner;
}

static inline agent_lease_t *add_lease(agent_runs_t *runs,
                                       agent_runner_t *runner, char digit)
{
    agent_lease_key_t key = {.epoch = 1};
    agent_lease_t *lease;

    memset(key.run_id, digit, sizeof(key.run_id));
    lease = agent_lease_add(&runs->leases, &key, &runner->group);
    apr_snprintf(lease->deployment_id, sizeof(lease->deployment_id), "%pp",
                 runner->runner_pool);
    return lease;
}

/* A runner with nine runs, and one with a single run. */
static inline fixture_t *make_fixture(apr_pool_t *pool)
{
    fixture_t *fixture = apr_pcalloc(pool, sizeof(*fixture));
    agent_context_t *context = apr_pcalloc(pool, sizeof(*context));
    agent_runs_t *runs = apr_pcalloc(pool, sizeof(*runs));
    agent_runner_io_t *io = apr_pcalloc(pool, sizeof(*io));

    context->pool = pool;
    context->config = apr_pcalloc(pool, sizeof(*context->config));
    context->timing.credit = apr_time_from_sec(10);
    context->timing.patience = apr_time_from_sec(300);
    context->timing.statement = apr_time_from_sec(5);
    io->context = context;
    io->runners = apr_pcalloc(pool, sizeof(*io->runners));
    agent_runner_init(io->runners, context, NULL);
    io->runs = runs;
    runs->context = context;
    agent_lease_init(&runs->leases, context);
    agent_batch_init(&runs->batches, context);
    agent_credit_init(&runs->credits, context, &runs->batches, io->runners);
    fixture->runs = runs;
    fixture->io = io;
    fixture->runner = make_runner(io->runners, pool);
    for (int i = 0; i < RUNS; i++) {
        fixture->leases[i] = add_lease(runs, fixture->runner, (char)('0' + i));
    }
    fixture->other = add_lease(runs, make_runner(io->runners, pool), 'f');
    return fixture;
}

/* Adds a line of that length to the output of a run of the first runner: an
 * end, so that its batch is due at once. */
static inline void add_line(const fixture_t *fixture, int run,
                            apr_size_t length)
{
    char *line = apr_palloc(fixture->runs->context->pool, length);

    memset(line, ' ', length);
    line[0] = '{';
    line[length - 1] = '}';
    agent_batch_add(&fixture->runs->batches, fixture->leases[run],
                    AGENT_ITEM_END, line, length, -1);
}

/* The same with a line for a dedicated batch. */
static inline void add_long_line(const fixture_t *fixture, int run)
{
    add_line(fixture, run, AGENT_BATCH_LONG_LINE + 1);
}

/* Reads all input of a runner; returns the number of lines, each a `go`. */
static inline int read_go(agent_runner_t *runner)
{
    agent_buffer_t *input = &runner->input;
    const char *text = agent_buffer_text(input);
    int lines = 0;

    for (apr_size_t i = 0; i < agent_buffer_length(input); i++) {
        lines += text[i] == '\n';
    }
    runner->written += agent_buffer_length(input);
    agent_buffer_consume(input, agent_buffer_length(input));
    return lines;
}

/* The run requests credit, and the queue steps. */
static inline void request(const fixture_t *fixture, agent_lease_t *lease,
                           apr_size_t bytes)
{
    assert_true(agent_credit_request(&fixture->runs->credits, lease, bytes));
    agent_credit_step(&fixture->runs->credits);
}

/* The runs of the first runner request long lines. */
static inline void request_all(const fixture_t *fixture)
{
    for (int i = 0; i < RUNS; i++) {
        assert_true(agent_credit_request(&fixture->runs->credits,
                                         fixture->leases[i], BIG));
    }
}

#endif
