/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's tables with two runners, without processes. */
#ifndef SUPERVISOR_FIXTURE_H
#define SUPERVISOR_FIXTURE_H

#include "check.h"

#include <string.h>

#include "../../mod_agent/supervisor/instance.h"

#define BIG ((apr_size_t)8 * 1024 * 1024)

#define RUNS 9

typedef struct fixture_t {
    agent_supervisor_t *sv;
    agent_runner_t *runner;
    agent_lease_t *leases[RUNS];
    /* Of another runner. */
    agent_lease_t *other;
} fixture_t;

static inline agent_runner_t *make_runner(apr_pool_t *pool)
{
    agent_runner_t *runner = apr_pcalloc(pool, sizeof(*runner));

    agent_lease_group_init(&runner->group, runner);
    agent_buffer_init(&runner->input, pool);
    runner->pong_by = AGENT_CLOCK_NEVER;
    return runner;
}

static inline agent_lease_t *add_lease(agent_supervisor_t *sv,
                                       agent_runner_t *runner, char digit)
{
    agent_lease_key_t key = {.epoch = 1};

    memset(key.run_id, digit, sizeof(key.run_id));
    return agent_lease_add(&sv->leases, &key, &runner->group);
}

/* A runner with nine runs, and one with a single run. */
static inline fixture_t *make_fixture(apr_pool_t *pool)
{
    fixture_t *fixture = apr_pcalloc(pool, sizeof(*fixture));
    agent_supervisor_t *sv = apr_pcalloc(pool, sizeof(*sv));

    sv->context = apr_pcalloc(pool, sizeof(*sv->context));
    sv->context->pool = pool;
    sv->context->timing.credit = apr_time_from_sec(10);
    fixture->sv = sv;
    fixture->runner = make_runner(pool);
    agent_lease_init(&sv->leases, sv->context);
    agent_batch_init(&sv->batches, sv->context);
    agent_credit_init(&sv->credits, sv->context, &sv->batches, &sv->runners);
    for (int i = 0; i < RUNS; i++) {
        fixture->leases[i] = add_lease(sv, fixture->runner, (char)('0' + i));
    }
    fixture->other = add_lease(sv, make_runner(pool), 'f');
    return fixture;
}

/* Lines `go` that a runner reads. */
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
    assert_true(agent_credit_ask(&fixture->sv->credits, lease, bytes));
    agent_credit_step(&fixture->sv->credits);
}

/* The runs of the first runner request long lines. */
static inline void ask_all(const fixture_t *fixture)
{
    for (int i = 0; i < RUNS; i++) {
        assert_true(
            agent_credit_ask(&fixture->sv->credits, fixture->leases[i], BIG));
    }
}

#endif
