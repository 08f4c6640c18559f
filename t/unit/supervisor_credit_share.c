/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Flow control of a deployment that sends more than its share; see
 * supervisor/runner/run/credit.h. */
#include "supervisor_fixture.h"

#include "../../mod_agent/supervisor/runner/io/io.h"
#include "../../mod_agent/supervisor/runner/io/line.h"

/* Room for dedicated batches that a deployment has alone. */
#define SHARE (AGENT_BATCH_MAX_DEDICATED / 2)

/* Runners of one deployment, each with a run. */
#define RUNNERS 6

typedef struct deployment_t {
    fixture_t *fixture;
    agent_lease_t *leases[RUNNERS];
} deployment_t;

static deployment_t *make_deployment(apr_pool_t *pool)
{
    deployment_t *deployment = apr_pcalloc(pool, sizeof(*deployment));

    deployment->fixture = make_fixture(pool);
    for (int i = 0; i < RUNNERS; i++) {
        agent_lease_t *lease = add_lease(
            deployment->fixture->runs,
            make_runner(deployment->fixture->io->runners, pool),
            (char)('k' + i));

        apr_cpystrn(lease->deployment_id, "one", sizeof(lease->deployment_id));
        deployment->leases[i] = lease;
    }
    return deployment;
}

/* Adds a line of the run, if it may be added now. */
static bool send_line(const fixture_t *fixture, agent_lease_t *lease,
                      apr_size_t length)
{
    agent_runs_t *runs = fixture->runs;
    apr_pool_t *pool;
    char *line;

    if (!agent_credit_allows(&runs->credits, lease, length)) {
        return false;
    }
    apr_pool_create(&pool, runs->context->pool);
    line = apr_palloc(pool, length);
    memset(line, ' ', length);
    agent_credit_spend(&runs->credits, lease, length + 1);
    agent_batch_add(&runs->batches, lease, AGENT_ITEM_TASK, line, length, -1);
    apr_pool_destroy(pool);
    return true;
}

/* All runs of the first runner send as many such lines as they may. */
static void flood(const fixture_t *fixture, apr_size_t length)
{
    for (int i = 0; i < RUNS; i++) {
        while (send_line(fixture, fixture->leases[i], length)) {
        }
    }
}

static void save_all(const fixture_t *fixture)
{
    agent_batch_clear(&fixture->runs->batches);
    for (int i = 0; i < RUNS; i++) {
        fixture->leases[i]->credit.unsaved = 0;
    }
}

static void lines_without_credit_leave_half_of_the_room_to_others(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    flood(fixture, 100000);
    assert_true(runs->batches.backlogs.sums[AGENT_BACKLOG_DEDICATED]
                > SHARE * 9 / 10);
    assert_true(runs->batches.backlogs.sums[AGENT_BACKLOG_DEDICATED] <= SHARE);
    /* Each run has some of it. */
    assert_true(fixture->leases[0]->credit.unsaved <= SHARE / 2);
    assert_true(fixture->leases[4]->credit.unsaved > 0);
    request(fixture, fixture->other, BIG);
    assert_int_equal(fixture->other->credit.granted, BIG);
    assert_true(send_line(fixture, fixture->other, 7 * 1024 * 1024));
}

static void a_line_longer_than_a_share_passes_alone(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    runs->batches.backlogs
        .sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED
        - 9 * 1024 * 1024;
    assert_true(send_line(fixture, fixture->leases[0], 7 * 1024 * 1024));
    assert_false(send_line(fixture, fixture->leases[0], 100000));
    assert_false(send_line(fixture, fixture->leases[1], 100000));
    assert_true(send_line(fixture, fixture->other, 100000));
}

static void runners_of_a_deployment_reserve_no_more_than_its_share(void **state)
{
    deployment_t *deployment = make_deployment(*state);
    const fixture_t *fixture = deployment->fixture;

    for (int i = 0; i < RUNNERS; i++) {
        request(fixture, deployment->leases[i], BIG);
    }
    assert_int_equal(fixture->runs->batches.backlogs.sums[AGENT_BACKLOG_CREDIT],
                     SHARE);
    assert_int_equal(deployment->leases[4]->credit.granted, 0);
    request(fixture, fixture->other, BIG);
    assert_int_equal(fixture->other->credit.granted, BIG);
}

static void credit_that_a_deployment_does_not_use_lapses_for_its_other_runners(
    void **state)
{
    deployment_t *deployment = make_deployment(*state);
    const fixture_t *fixture = deployment->fixture;
    agent_runs_t *runs = fixture->runs;

    request(fixture, fixture->other, BIG);
    for (int i = 0; i < 4; i++) {
        request(fixture, deployment->leases[i], BIG);
    }
    /* Another deployment has some: its share is 28 MB. */
    assert_int_equal(deployment->leases[3]->credit.granted, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(deployment->leases[3]->credit.granted, 0);
        runs->context->now += apr_time_from_sec(1);
        agent_credit_step(&runs->credits);
    }
    assert_int_equal(deployment->leases[3]->credit.granted, BIG);
    assert_int_equal(deployment->leases[0]->credit.granted, 0);
    assert_int_equal(deployment->leases[1]->credit.granted, BIG);
    assert_int_equal(fixture->other->credit.granted, BIG);
}

static void credit_is_kept_where_its_deployment_would_not_have_a_share(
    void **state)
{
    deployment_t *deployment = make_deployment(*state);
    const fixture_t *fixture = deployment->fixture;
    agent_runs_t *runs = fixture->runs;

    request(fixture, deployment->leases[0], BIG);
    agent_backlog_add(&runs->batches.backlogs, "one", AGENT_BACKLOG_DEDICATED,
                      SHARE - BIG / 2);
    for (int i = 0; i < 5; i++) {
        if (i == 0) {
            request(fixture, deployment->leases[1], BIG);
        }
        runs->context->now += apr_time_from_sec(1);
        agent_credit_step(&runs->credits);
    }
    assert_int_equal(deployment->leases[0]->credit.granted, BIG);
}

static void the_next_room_of_a_deployment_is_for_a_run_that_waits(void **state)
{
    deployment_t *deployment = make_deployment(*state);
    const fixture_t *fixture = deployment->fixture;
    agent_runs_t *runs = fixture->runs;

    agent_backlog_add(&runs->batches.backlogs, "one", AGENT_BACKLOG_DEDICATED,
                      SHARE - BIG / 2);
    assert_true(
        agent_credit_allows(&runs->credits, deployment->leases[1], 100000));
    request(fixture, deployment->leases[0], BIG);
    /* A shorter line does not overtake it, with credit or without. */
    request(fixture, deployment->leases[1], 100000);
    assert_int_equal(deployment->leases[1]->credit.granted, 0);
    assert_false(
        agent_credit_allows(&runs->credits, deployment->leases[2], 100000));
    assert_true(agent_credit_allows(&runs->credits, fixture->other, 100000));
    request(fixture, fixture->other, BIG);
    assert_int_equal(fixture->other->credit.granted, BIG);
    agent_backlog_remove(&runs->batches.backlogs, "one",
                         AGENT_BACKLOG_DEDICATED, SHARE / 2);
    agent_credit_step(&runs->credits);
    assert_int_equal(deployment->leases[0]->credit.granted, BIG);
    assert_int_equal(deployment->leases[1]->credit.granted, 100000);
}

static void short_lines_leave_half_of_the_room_to_others(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_lease_t *lease = fixture->leases[1];

    agent_backlog_add(&runs->batches.backlogs, lease->deployment_id,
                      AGENT_BACKLOG_SHARED, AGENT_BATCH_MAX_SHARED / 2 - 2000);
    assert_true(send_line(fixture, lease, 900));
    assert_false(send_line(fixture, lease, 1200));
    assert_true(send_line(fixture, fixture->other, 1200));
    agent_backlog_remove(&runs->batches.backlogs, lease->deployment_id,
                         AGENT_BACKLOG_SHARED, 1024 * 1024);
    assert_true(send_line(fixture, lease, 1200));
}

static void short_lines_for_dedicated_batches_are_limited_too(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    const agent_lease_t *lease = fixture->leases[0];

    assert_true(send_line(fixture, fixture->leases[0], 100000));
    agent_backlog_add(&runs->batches.backlogs, lease->deployment_id,
                      AGENT_BACKLOG_DEDICATED, SHARE - 101000);
    assert_false(send_line(fixture, fixture->leases[0], 1000));
    assert_true(send_line(fixture, fixture->leases[1], 1000));
    assert_true(send_line(fixture, fixture->other, 1000));
}

static void a_held_line_has_room_again_when_output_is_saved(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    agent_lease_t *last = fixture->leases[RUNS - 1];
    apr_size_t length = 3 * 1024 * 1024;

    flood(fixture, length);
    assert_false(
        agent_runner_line_has_room(runs, fixture->runner, &last->key, length));
    agent_credit_hold(&runs->credits, last, length);
    last->group->runner->is_held = true;
    save_all(fixture);
    agent_credit_step(&runs->credits);
    assert_true(
        agent_runner_line_has_room(runs, fixture->runner, &last->key, length));
    assert_true(send_line(fixture, last, length));
    assert_int_equal(agent_credit_used(&runs->credits),
                     length + 1 + AGENT_BATCH_ITEM_BYTES
                         + AGENT_BATCH_OWN_BYTES);
}

static void output_of_another_deployment_delays_no_large_run(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    flood(fixture, 100000);
    assert_false(agent_credit_is_half_free(&runs->credits, fixture->leases[0]));
    assert_true(agent_credit_is_half_free(&runs->credits, fixture->other));
    /* Credit of the runner counts. */
    assert_true(send_line(fixture, fixture->other, 1000000));
    assert_true(agent_credit_is_half_free(&runs->credits, fixture->other));
    fixture->other->credit.unsaved = 0;
    request(fixture, fixture->other, BIG);
    assert_false(agent_credit_is_half_free(&runs->credits, fixture->other));
}

static void ignore_log(void *baton, agent_log_level_t level, const char *id,
                       apr_status_t rv, const char *text)
{
}

/* Adds an event of another run to the output of the runner. */
static agent_lease_t *add_event(const fixture_t *fixture,
                                agent_runner_t *runner, const char *run_id)
{
    apr_pool_t *pool = fixture->runs->context->pool;
    agent_lease_key_t key = {.epoch = 1};
    agent_lease_t *lease;
    const char *line;

    memcpy(key.run_id, run_id, sizeof(key.run_id));
    lease = agent_lease_add(&fixture->runs->leases, &key, &runner->group);
    apr_cpystrn(lease->deployment_id, "one", sizeof(lease->deployment_id));
    line = apr_psprintf(pool,
                        "{\"type\":\"event\",\"run_id\":\"%s\","
                        "\"epoch\":1,\"event\":\"custom\",\"data\":1}\n",
                        run_id);
    agent_buffer_append(&runner->output, line, strlen(line));
    return lease;
}

/* A runner of the deployment is held: it has sent an event of each of two runs.
 * Returns the first. */
static agent_lease_t *hold_events(const fixture_t *fixture, const char *run_id,
                                  const char *next_id)
{
    apr_pool_t *pool = fixture->runs->context->pool;
    agent_runner_t *runner = make_runner(fixture->io->runners, pool);
    agent_lease_t *lease;

    agent_buffer_init(&runner->output, pool);
    lease = add_event(fixture, runner, run_id);
    runner->scanned = agent_buffer_length(&runner->output) - 1;
    add_event(fixture, runner, next_id);
    runner->state = AGENT_RUNNER_READY;
    runner->held_key = lease->key;
    runner->is_held = true;
    agent_runner_touch(runner);
    return lease;
}

static void held_runners_of_a_deployment_take_turns(void **state)
{
    static const agent_supervisor_config_t config = {.log.write = ignore_log};
    fixture_t *fixture = make_fixture(*state);
    agent_backlog_table_t *backlogs = &fixture->runs->batches.backlogs;
    apr_size_t line;
    apr_size_t counted;
    agent_lease_t *a;
    agent_lease_t *b;

    fixture->io->context->config = &config;
    a = hold_events(fixture, "a0000000-0000-0000-0000-000000000000",
                    "a1000000-0000-0000-0000-000000000000");
    b = hold_events(fixture, "b0000000-0000-0000-0000-000000000000",
                    "b1000000-0000-0000-0000-000000000000");
    line = a->group->runner->scanned + 1;
    counted = line + AGENT_BATCH_ITEM_BYTES + AGENT_BATCH_PART_BYTES;
    agent_backlog_add(backlogs, "one", AGENT_BACKLOG_SHARED,
                      AGENT_BATCH_MAX_SHARED / 2);
    agent_runner_io_resume(fixture->io);
    assert_int_equal(a->credit.unsaved + b->credit.unsaved, 0);
    for (int i = 1; i <= 2; i++) {
        agent_backlog_remove(backlogs, "one", AGENT_BACKLOG_SHARED, counted);
        agent_runner_io_resume(fixture->io);
        assert_int_equal(a->credit.unsaved, line);
        assert_int_equal(b->credit.unsaved, (i - 1) * line);
        assert_true(a->group->runner->is_held);
        assert_true(b->group->runner->is_held);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(lines_without_credit_leave_half_of_the_room_to_others),
        CHECK_TEST(a_line_longer_than_a_share_passes_alone),
        CHECK_TEST(runners_of_a_deployment_reserve_no_more_than_its_share),
        CHECK_TEST(
            credit_that_a_deployment_does_not_use_lapses_for_its_other_runners),
        CHECK_TEST(credit_is_kept_where_its_deployment_would_not_have_a_share),
        CHECK_TEST(the_next_room_of_a_deployment_is_for_a_run_that_waits),
        CHECK_TEST(short_lines_leave_half_of_the_room_to_others),
        CHECK_TEST(short_lines_for_dedicated_batches_are_limited_too),
        CHECK_TEST(a_held_line_has_room_again_when_output_is_saved),
        CHECK_TEST(output_of_another_deployment_delays_no_large_run),
        CHECK_TEST(held_runners_of_a_deployment_take_turns),
    };

    return CHECK_RUN(tests);
}
