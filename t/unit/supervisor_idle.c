/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* When the runners of a pool without work end, and which graphs are asked for
 * from then on; see supervisor/runner/idle.h. */
#include "check.h"

#include "../../mod_agent/supervisor/runner/idle.h"
#include "../../mod_agent/supervisor/runner/run/runs.h"

#define NOW       apr_time_from_sec(1000)
#define IDLE_TIME apr_time_from_sec(10)
#define RUNNERS   2

typedef struct fixture_t {
    agent_context_t context;
    agent_pool_config_t pool_config;
    agent_supervisor_config_t config;
    agent_runner_table_t table;
    agent_runs_t runs;
    agent_runner_pool_t *pool;
    agent_runner_t runners[RUNNERS];
} fixture_t;

static void ignore_log(void *baton, agent_log_level_t level, const char *id,
                       apr_status_t rv, const char *text)
{
}

/* A pool of two graphs, each of which one of its two runners has reported; its
 * idle time is over. */
static fixture_t *make_fixture(apr_pool_t *pool)
{
    static const char *const names[RUNNERS] = {"one", "two"};
    fixture_t *f = apr_pcalloc(pool, sizeof(*f));

    f->pool_config = (agent_pool_config_t){.deployment = "default",
                                           .graph_ids = names,
                                           .graph_count = RUNNERS,
                                           .graphs = "{}",
                                           .runners = RUNNERS,
                                           .idle_time = IDLE_TIME};
    f->config = (agent_supervisor_config_t){
        .pools = &f->pool_config, .pool_count = 1, .log.write = ignore_log};
    f->context.pool = pool;
    f->context.config = &f->config;
    f->context.now = NOW;
    agent_runner_init(&f->table, &f->context, NULL);
    f->table.spawner.fd = -1;
    f->runs.context = &f->context;
    f->pool = f->table.pools;
    for (int i = 0; i < RUNNERS; i++) {
        agent_runner_t *runner = &f->runners[i];
        bool has[RUNNERS] = {i == 0, i == 1};

        runner->runner_pool = f->pool;
        agent_runner_link(&f->table, runner);
        agent_lease_group_init(&runner->group, runner, 0);
        agent_buffer_init(&runner->input, pool);
        runner->state = AGENT_RUNNER_READY;
        runner->set = agent_graphs_take_set(&f->pool->graphs, has);
    }
    f->context.now += IDLE_TIME;
    return f;
}

static bool becomes_idle(fixture_t *f)
{
    agent_runner_idle_tick(&f->table, &f->runs);
    return agent_pool_is_idle(f->pool);
}

static void the_graphs_of_all_its_runners_are_kept(void **state)
{
    fixture_t *f = make_fixture(*state);

    assert_true(becomes_idle(f));
    assert_int_equal(f->pool->idle_set->count, RUNNERS);
}

static void a_pool_with_a_run_is_not_idle(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->runners[0].group.active = 1;
    assert_false(becomes_idle(f));
    f->runners[0].group.active = 0;
    assert_false(becomes_idle(f));
    f->context.now += IDLE_TIME;
    assert_true(becomes_idle(f));
}

/* It may return runs. */
static void a_pool_with_a_claim_in_flight_is_not_idle(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->pool->claim.set = f->runners[0].set;
    assert_false(becomes_idle(f));
    f->pool->claim.set = NULL;
    assert_true(becomes_idle(f));
}

static void a_pool_waits_for_the_report_of_a_runner_that_starts(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->runners[1].state = AGENT_RUNNER_STARTING;
    assert_false(becomes_idle(f));
    f->runners[1].state = AGENT_RUNNER_READY;
    assert_true(becomes_idle(f));
    assert_int_equal(f->pool->idle_set->count, RUNNERS);
}

/* Its successor starts after the pause that follows a failure. */
static void a_pool_waits_for_the_successor_of_a_runner_that_died(void **state)
{
    fixture_t *f = make_fixture(*state);

    agent_runner_set_dead(&f->table, &f->runners[1]);
    assert_false(becomes_idle(f));
    APR_RING_REMOVE(&f->runners[1], pool_link);
    assert_false(becomes_idle(f));
}

/* A runner that is drained, or is for quarantined runs, reports nothing for its
 * successor.
 */
static void only_ordinary_runners_that_stay_count(void **state)
{
    fixture_t *f = make_fixture(*state);

    f->runners[1].state = AGENT_RUNNER_DRAINING;
    assert_false(becomes_idle(f));
    f->runners[1].state = AGENT_RUNNER_READY;
    f->runners[1].max_shared = 1;
    assert_false(becomes_idle(f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_graphs_of_all_its_runners_are_kept),
        CHECK_TEST(a_pool_with_a_run_is_not_idle),
        CHECK_TEST(a_pool_with_a_claim_in_flight_is_not_idle),
        CHECK_TEST(a_pool_waits_for_the_report_of_a_runner_that_starts),
        CHECK_TEST(a_pool_waits_for_the_successor_of_a_runner_that_died),
        CHECK_TEST(only_ordinary_runners_that_stay_count),
    };

    return CHECK_RUN(tests);
}
