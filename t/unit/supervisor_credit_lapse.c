/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Credit that runs do not use; see supervisor/runner/run/credit.h. */
#include "supervisor_fixture.h"

/* Steps each second. */
static void wait_seconds(const fixture_t *fixture, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        fixture->runs->context->now += apr_time_from_sec(1);
        agent_credit_step(&fixture->runs->credits);
    }
}

static void credit_that_is_not_used_lapses(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    request(fixture, fixture->leases[0], BIG);
    wait_seconds(fixture, 9);
    assert_int_equal(fixture->leases[0]->credit.granted, BIG);
    wait_seconds(fixture, 1);
    assert_int_equal(agent_credit_used(&runs->credits), 0);
}

static void credit_lapses_sooner_where_it_lapsed_before(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    int lines = 0;

    for (int i = 0; i < 400 * RUNS; i++) {
        if (fixture->leases[i % RUNS]->credit.granted == 0) {
            agent_credit_request(&runs->credits, fixture->leases[i % RUNS],
                                 BIG);
        }
        runs->context->now += apr_time_from_msec(100) / RUNS;
        agent_credit_step(&runs->credits);
        lines += read_go(fixture->runner);
    }
    assert_true(lines > 200);
    /* Credit that is used makes up for it. */
    for (int i = 0; i < RUNS; i++) {
        agent_credit_remove(&runs->credits, fixture->leases[i]);
    }
    for (int i = 0; i < RUNS; i++) {
        agent_credit_request(&runs->credits, fixture->leases[i], BIG);
        agent_credit_step(&runs->credits);
        agent_credit_spend(&runs->credits, fixture->leases[i], BIG);
    }
    assert_int_equal(fixture->runner->group.classes[1].lapses, 0);
}

static void credit_does_not_lapse_while_the_supervisor_is_stopped(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    request(fixture, fixture->leases[0], BIG);
    runs->context->now += apr_time_from_sec(3600);
    agent_credit_step(&runs->credits);
    assert_int_equal(fixture->leases[0]->credit.granted, BIG);
    wait_seconds(fixture, 10);
    assert_int_equal(fixture->leases[0]->credit.granted, 0);
}

static void credit_does_not_lapse_before_the_runner_answers(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;

    request(fixture, fixture->leases[0], BIG);
    wait_seconds(fixture, 9);
    fixture->runner->pong_by = runs->context->now + apr_time_from_sec(15);
    wait_seconds(fixture, 12);
    fixture->runner->pong_by = AGENT_CLOCK_NEVER;
    agent_credit_step(&runs->credits);
    assert_int_equal(fixture->leases[0]->credit.granted, BIG);
    wait_seconds(fixture, 1);
    assert_int_equal(fixture->leases[0]->credit.granted, 0);
}

/* Dedicated batches that six runners fill with credit: two of them have two,
 * the others one; a seventh waits. */
#define RUNNERS 7

typedef struct crowd_t {
    agent_runs_t *runs;
    agent_lease_t *silent[8];
    agent_lease_t *seventh;
} crowd_t;

static crowd_t *make_crowd(apr_pool_t *pool)
{
    crowd_t *crowd = apr_pcalloc(pool, sizeof(*crowd));
    fixture_t *fixture = make_fixture(pool);
    agent_runner_t *runners[RUNNERS];

    crowd->runs = fixture->runs;
    for (int i = 0; i < RUNNERS; i++) {
        runners[i] = make_runner(fixture->io->runners, pool);
    }
    for (int i = 0; i < 8; i++) {
        /* The first two have two runs each, in the order of requests. */
        agent_runner_t *runner = runners[i < 4 ? i / 2 : i - 2];

        crowd->silent[i] = add_lease(crowd->runs, runner, (char)('k' + i));
        request(fixture, crowd->silent[i], BIG);
    }
    crowd->seventh = add_lease(crowd->runs, runners[6], 'z');
    assert_int_equal(agent_credit_used(&crowd->runs->credits),
                     AGENT_BATCH_MAX_DEDICATED);
    return crowd;
}

static void pass(const crowd_t *crowd, apr_interval_time_t time)
{
    crowd->runs->context->now += time;
    agent_credit_step(&crowd->runs->credits);
}

static void credit_is_kept_while_nobody_waits_for_its_room(void **state)
{
    crowd_t *crowd = make_crowd(*state);

    for (int i = 0; i < 9; i++) {
        pass(crowd, apr_time_from_sec(1));
    }
    assert_int_equal(agent_credit_used(&crowd->runs->credits),
                     AGENT_BATCH_MAX_DEDICATED);
}

static void a_runner_without_credit_gets_what_six_others_do_not_use(
    void **state)
{
    crowd_t *crowd = make_crowd(*state);
    agent_runs_t *runs = crowd->runs;

    /* However long credit may be kept otherwise. */
    runs->context->timing.credit = apr_time_from_sec(3600);
    agent_credit_request(&runs->credits, crowd->seventh, BIG);
    pass(crowd, apr_time_from_sec(1));
    assert_int_equal(crowd->seventh->credit.granted, 0);
    assert_int_equal(agent_credit_step(&runs->credits),
                     crowd->silent[0]->credit.yield_at);
    pass(crowd, apr_time_from_sec(1));
    assert_int_equal(crowd->seventh->credit.granted, BIG);
    /* Of the oldest, and no more than it needs. */
    assert_int_equal(crowd->silent[0]->credit.granted, 0);
    assert_int_equal(crowd->silent[1]->credit.granted, BIG);
    assert_int_equal(crowd->silent[0]->group->classes[1].lapses, 1);
}

static void credit_is_kept_where_giving_it_up_makes_no_room(void **state)
{
    crowd_t *crowd = make_crowd(*state);
    agent_runs_t *runs = crowd->runs;

    runs->batches.backlogs
        .sums[AGENT_BACKLOG_DEDICATED] = AGENT_BATCH_MAX_DEDICATED - BIG / 2;
    agent_credit_request(&runs->credits, crowd->seventh, BIG);
    for (int i = 0; i < 5; i++) {
        pass(crowd, apr_time_from_sec(1));
    }
    assert_int_equal(crowd->silent[0]->credit.granted, BIG);
}

static void a_line_after_its_credit_lapsed_takes_its_turn(void **state)
{
    crowd_t *crowd = make_crowd(*state);
    agent_runs_t *runs = crowd->runs;
    agent_lease_t *late = crowd->silent[0];

    agent_credit_request(&runs->credits, crowd->seventh, BIG);
    pass(crowd, apr_time_from_sec(2));
    assert_false(agent_credit_allows(&runs->credits, late, BIG - 1));
    agent_credit_hold(&runs->credits, late, BIG - 1);
    late->group->runner->is_held = true;
    read_go(late->group->runner);
    for (int i = 1; i < 8; i++) {
        agent_credit_spend(&runs->credits, crowd->silent[i], BIG);
    }
    agent_credit_step(&runs->credits);
    assert_true(agent_credit_allows(&runs->credits, late, BIG - 1));
    /* Still so in the next iteration of the loop, and without another `go`. */
    agent_credit_step(&runs->credits);
    assert_true(agent_credit_allows(&runs->credits, late, BIG - 1));
    assert_int_equal(read_go(late->group->runner), 0);
    agent_credit_spend(&runs->credits, late, BIG);
    assert_int_equal(agent_credit_used(&runs->credits), BIG);
}

static void a_held_line_of_a_run_that_is_gone_waits_for_nothing(void **state)
{
    crowd_t *crowd = make_crowd(*state);
    agent_runs_t *runs = crowd->runs;

    agent_credit_hold(&runs->credits, crowd->seventh, BIG - 1);
    agent_credit_release(&runs->credits, crowd->seventh);
    assert_int_equal(crowd->seventh->credit.wanted, 0);
    assert_int_equal(read_go(crowd->seventh->group->runner), 0);
}

static void a_request_before_credit_is_used_counts_as_a_lapse(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    const agent_credit_class_t *class = &fixture->runner->group.classes[1];

    for (int i = 0; i < 3; i++) {
        request(fixture, fixture->leases[0], BIG);
        read_go(fixture->runner);
    }
    assert_int_equal(class->lapses, 2);
    /* The rest of a short line was used. */
    agent_credit_spend(&fixture->runs->credits, fixture->leases[0],
                       BIG - AGENT_BATCH_LONG_LINE);
    request(fixture, fixture->leases[0], BIG);
    assert_int_equal(class->lapses, 2);
}

static void a_run_that_ends_without_using_credit_lets_it_lapse(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_runs_t *runs = fixture->runs;
    const agent_credit_class_t *class = &fixture->runner->group.classes[1];

    for (int i = 0; i < 2; i++) {
        request(fixture, fixture->leases[i], BIG);
        /* A run that is cancelled may leave lines out. */
        fixture->leases[i]->cause = i == 0 ? AGENT_CAUSE_NONE
                                           : AGENT_CAUSE_REQUEST;
        agent_credit_release(&runs->credits, fixture->leases[i]);
        assert_int_equal(agent_credit_used(&runs->credits), 0);
        assert_int_equal(class->lapses, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(credit_that_is_not_used_lapses),
        CHECK_TEST(credit_lapses_sooner_where_it_lapsed_before),
        CHECK_TEST(credit_does_not_lapse_while_the_supervisor_is_stopped),
        CHECK_TEST(credit_does_not_lapse_before_the_runner_answers),
        CHECK_TEST(credit_is_kept_while_nobody_waits_for_its_room),
        CHECK_TEST(a_runner_without_credit_gets_what_six_others_do_not_use),
        CHECK_TEST(credit_is_kept_where_giving_it_up_makes_no_room),
        CHECK_TEST(a_line_after_its_credit_lapsed_takes_its_turn),
        CHECK_TEST(a_held_line_of_a_run_that_is_gone_waits_for_nothing),
        CHECK_TEST(a_request_before_credit_is_used_counts_as_a_lapse),
        CHECK_TEST(a_run_that_ends_without_using_credit_lets_it_lapse),
    };

    return CHECK_RUN(tests);
}
