/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* When runs that were requeued are claimed; see supervisor/statement/claim.h
 * and worker.h. */
#include "supervisor_pools.h"

#include "../../mod_agent/supervisor/statement/check.h"

/* The longest of intervals that vary by 20 %. */
#define LONGEST(interval) ((interval)*6 / 5)

static void a_claim_follows_a_release_at_once(void **state)
{
    fixture_t *f = make_fixture(*state, SLOTS - 1);

    assert_true(agent_claim_operation.due(&f->claim) > NOW);
    receive_release(f);
    assert_true(agent_claim_operation.due(&f->claim) == NOW);
}

static void quarantined_runs_are_claimed_at_once_beside_full_runners(
    void **state)
{
    fixture_t *f = make_fixture(*state, SLOTS);

    receive_release(f);
    assert_true(agent_claim_operation.due(&f->claim) == NOW);
}

static void new_runs_do_not_cause_claims_while_runners_are_full(void **state)
{
    fixture_t *f = make_fixture(*state, SLOTS);

    agent_schedule_claim(&f->schedule);
    assert_true(agent_claim_operation.due(&f->claim) == f->set->full_scan_at);
}

static void a_claim_asks_each_pool_for_its_free_slots(void **state)
{
    fixture_t *f = make_fixture(*state, SLOTS - 1);
    const agent_pool_claim_t *first = &f->runners.pools[0].claim;
    const agent_pool_claim_t *full = &f->runners.pools[1].claim;

    agent_claim_choose(&f->claim);
    assert_ptr_equal(first->set, f->set);
    assert_int_equal(first->ordinary, 1);
    assert_int_equal(full->ordinary, 0);
    assert_int_equal(first->quarantined, AGENT_RUNNERS_QUARANTINE / 2);
    assert_int_equal(full->quarantined, AGENT_RUNNERS_QUARANTINE / 2);
    assert_int_equal(f->claim.ordinary, 1);
}

static void a_wake_up_asks_for_runs_of_its_deployment_only(void **state)
{
    fixture_t *f = make_idle_fixture(*state);

    agent_pools_claim_for(f->runners.pools, 2, OTHER " and more");
    assert_true(agent_claim_operation.due(&f->claim) == NOW);
    agent_claim_choose(&f->claim);
    assert_null(f->runners.pools[0].claim.set);
    assert_ptr_equal(f->runners.pools[1].claim.set, f->runner[1].set);
    agent_claim_finish(&f->claim, true);
    assert_true(agent_claim_operation.due(&f->claim) > NOW);
}

static void a_wake_up_during_a_claim_causes_another_one(void **state)
{
    fixture_t *f = make_idle_fixture(*state);
    const void *no_rows = NULL;

    agent_pools_claim_for(f->runners.pools, 2, OTHER);
    agent_claim_choose(&f->claim);
    agent_pools_claim_for(f->runners.pools, 2, OTHER);
    agent_claim_operation.receive(&f->claim,
                                  (const agent_db_result_t *)&no_rows);
    assert_true(agent_claim_operation.due(&f->claim) == NOW);
}

static void a_wake_up_without_a_deployment_asks_for_runs_of_all(void **state)
{
    fixture_t *f = make_idle_fixture(*state);

    agent_pools_claim_for(f->runners.pools, 2, "");
    assert_true(agent_claim_operation.due(&f->claim) == NOW);
    agent_claim_choose(&f->claim);
    assert_non_null(f->runners.pools[0].claim.set);
    assert_non_null(f->runners.pools[1].claim.set);
}

/* A slot of an account with a limit may be any of its deployments'. */
static void an_ended_run_asks_for_runs_of_the_account_if_that_has_a_limit(
    void **state)
{
    fixture_t *f = make_idle_fixture(*state);

    agent_pools_claim_after(f->runners.pools, 2, ONE, false);
    assert_true(agent_claim_operation.due(&f->claim) > NOW);
    agent_pools_claim_after(f->runners.pools, 2, ONE, true);
    agent_claim_choose(&f->claim);
    assert_null(f->runners.pools[1].claim.set);
    agent_claim_finish(&f->claim, true);
    f->configs[0].has_limit = f->configs[1].has_limit = true;
    f->configs[1].deployment = "other";
    agent_pools_claim_after(f->runners.pools, 2, ONE, false);
    agent_claim_choose(&f->claim);
    assert_non_null(f->runners.pools[0].claim.set);
    assert_non_null(f->runners.pools[1].claim.set);
    agent_claim_finish(&f->claim, true);
    f->configs[1].deployment = "default@" ONE;
    agent_pools_claim_after(f->runners.pools, 2, ONE, false);
    agent_claim_choose(&f->claim);
    assert_non_null(f->runners.pools[0].claim.set);
    assert_null(f->runners.pools[1].claim.set);
}

/* Runs whose wake-up was lost, or sent on another host, are found by it. */
static void wake_ups_do_not_postpone_the_poll_of_all_pools(void **state)
{
    fixture_t *f = make_idle_fixture(*state);
    const void *no_rows = NULL;

    for (int i = 0; i < 3; i++) {
        agent_pools_claim_for(f->runners.pools, 2, ONE);
        agent_claim_choose(&f->claim);
        assert_null(f->runners.pools[1].claim.set);
        agent_claim_operation.receive(&f->claim,
                                      (const agent_db_result_t *)&no_rows);
        f->context.now += AGENT_CLAIM_INTERVAL / 4;
    }
    assert_true(agent_claim_operation.due(&f->claim)
                <= NOW + AGENT_CLAIM_INTERVAL);
    f->context.now = NOW + AGENT_CLAIM_INTERVAL;
    agent_pools_claim_for(f->runners.pools, 2, ONE);
    agent_claim_choose(&f->claim);
    assert_non_null(f->runners.pools[0].claim.set);
    assert_non_null(f->runners.pools[1].claim.set);
}

static void a_failed_claim_is_repeated_for_all_pools(void **state)
{
    fixture_t *f = make_idle_fixture(*state);

    agent_pools_claim_for(f->runners.pools, 2, ONE);
    agent_claim_choose(&f->claim);
    (agent_claim_operation.fail)(&f->claim, AGENT_FAILURE_TIMEOUT);
    f->context.now = agent_claim_operation.due(&f->claim);
    assert_true(f->context.now > NOW);
    agent_claim_choose(&f->claim);
    assert_non_null(f->runners.pools[0].claim.set);
    assert_non_null(f->runners.pools[1].claim.set);
}

/* Its runs are claimed as soon as a slot is free, and not before, whatever the
 * other pools do. */
static void a_pool_that_got_all_is_due_when_it_has_a_slot(void **state)
{
    fixture_t *f = make_fixture(*state, SLOTS - 1);

    agent_claim_choose(&f->claim);
    f->runners.pools[0].claim.got_ordinary = 1;
    f->runner[0].group.active = SLOTS;
    agent_claim_finish(&f->claim, true);
    assert_true(f->set->is_due);
    assert_false(f->runner[1].set->is_due);
    assert_true(agent_claim_operation.due(&f->claim) > NOW);
    f->runner[1].group.active = 0;
    assert_true(agent_claim_operation.due(&f->claim) > NOW);
    f->runner[0].group.active = SLOTS - 1;
    assert_true(agent_claim_operation.due(&f->claim) == NOW);
}

static bool is_looked_at(const agent_runner_pool_t *pool)
{
    return AGENT_RING_HAS(pool, due_link) || AGENT_RING_HAS(pool, lacking_link)
        || AGENT_RING_HAS(pool, asked_link);
}

static void pools_without_work_are_not_looked_at(void **state)
{
    fixture_t *f = make_idle_fixture(*state);
    const void *no_rows = NULL;

    assert_true(agent_slots_replenish(&f->runners) == AGENT_CLOCK_NEVER);
    agent_pools_claim_for(f->runners.pools, 2, OTHER);
    assert_false(is_looked_at(&f->runners.pools[0]));
    assert_true(is_looked_at(&f->runners.pools[1]));
    agent_claim_choose(&f->claim);
    assert_true(is_looked_at(&f->runners.pools[1]));
    agent_claim_operation.receive(&f->claim,
                                  (const agent_db_result_t *)&no_rows);
    assert_false(is_looked_at(&f->runners.pools[1]));
}

/* It cannot be started here: the next attempt follows after a pause. */
static void a_runner_that_ends_is_replaced_in_its_pool(void **state)
{
    fixture_t *f = make_idle_fixture(*state);
    const agent_runner_pause_t *pause = &f->runners.pools[1].ordinary;

    agent_slots_replenish(&f->runners);
    f->runners.spawner.fd = -1;
    agent_runner_kill(&f->runners, &f->runner[1], AGENT_LOSS_COUNTED, "a test");
    assert_false(is_looked_at(&f->runners.pools[0]));
    agent_slots_replenish(&f->runners);
    assert_int_equal(pause->failures, 1);
    assert_true(agent_slots_replenish(&f->runners) == pause->start_at);
    assert_int_equal(f->runners.pools[0].ordinary.failures, 0);
}

/* The first search may come before the server has ended the statement. */
static void a_lost_claim_delays_no_claim_and_its_runs_are_searched_twice(
    void **state)
{
    fixture_t *f = make_fixture(*state, SLOTS - 1);
    agent_db_t db = {.prepared = apr_array_make(*state, 1, sizeof(void *))};
    agent_database_t database = {
        .context = &f->context, .db = &db, .scratch = *state};
    agent_runner_table_t none;
    agent_lease_check_t check = {.worker = &f->worker,
                                 .runners = &none,
                                 .runs = &f->runs,
                                 .schedule = &f->schedule};
    agent_error_t *err;

    agent_runner_init(&none, &f->context, &f->poll);
    f->context.timing.statement = apr_time_from_sec(5);
    f->control.sent_at = NOW - apr_time_from_sec(1);
    agent_claim_choose(&f->claim);
    (agent_claim_operation.fail)(&f->claim, AGENT_FAILURE_LOST);
    assert_true(agent_claim_operation.due(&f->claim) == NOW);
    agent_schedule_search(&f->schedule);
    agent_check_operation.send(&check, &database, &err);
    assert_true(f->schedule.search_at == NOW + apr_time_from_sec(4));
    f->context.now = f->schedule.search_at;
    agent_check_operation.send(&check, &database, &err);
    assert_true(f->schedule.search_at > f->context.now + apr_time_from_sec(5));
}

static void nothing_is_claimed_during_a_drain(void **state)
{
    fixture_t *f = make_fixture(*state, SLOTS - 1);

    agent_schedule_claim(&f->schedule);
    assert_true(agent_claim_operation.due(&f->claim) == NOW);
    f->context.mode = AGENT_MODE_DRAINING;
    assert_true(agent_claim_operation.due(&f->claim) == AGENT_CLOCK_NEVER);
    agent_pool_set_due(&f->runners.pools[0], f->set, true);
    assert_true(agent_claim_operation.due(&f->claim) == AGENT_CLOCK_NEVER);
}

/* The longest pauses of many, which vary at random: until the next sweep of
 * dead workers, and until the next claim of all pools. */
static void find_pauses(apr_interval_time_t *sweep, apr_interval_time_t *claim,
                        apr_pool_t *pool)
{
    fixture_t *f = make_idle_fixture(pool);
    /* Without a connection of libpq: it sends nothing. */
    agent_db_t db = {.prepared = apr_array_make(pool, 1, sizeof(void *))};
    agent_database_t database = {
        .context = &f->context, .db = &db, .scratch = pool};
    const void *no_rows = NULL;
    agent_error_t *err;

    f->worker.context = &f->context;
    *sweep = *claim = 0;
    for (int i = 0; i < 100; i++) {
        agent_sweep_workers_operation.send(&f->worker, &database, &err);
        agent_sweep_workers_operation.receive(
            &f->worker, (const agent_db_result_t *)&no_rows);
        agent_schedule_claim(&f->schedule);
        agent_claim_choose(&f->claim);
        agent_claim_operation.receive(&f->claim,
                                      (const agent_db_result_t *)&no_rows);
        *sweep = AGENT_MAX(*sweep,
                           agent_sweep_workers_operation.due(&f->worker) - NOW);
        *claim = AGENT_MAX(*claim, agent_claim_operation.due(&f->claim) - NOW);
    }
}

static void runs_of_a_dead_host_begin_again_within_30_seconds(void **state)
{
    apr_interval_time_t sweep;
    apr_interval_time_t claim;

    find_pauses(&sweep, &claim, *state);
    assert_in_range(sweep, 1, LONGEST(AGENT_SWEEP_WORKERS_INTERVAL));
    assert_in_range(claim, 1, LONGEST(AGENT_CLAIM_INTERVAL));
    assert_true(apr_time_from_sec(AGENT_SUPERVISOR_LEASE_SEC
                                  + AGENT_SWEEP_WORKERS_LATE_SEC)
                    + sweep + claim
                <= apr_time_from_sec(29));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_claim_follows_a_release_at_once),
        CHECK_TEST(quarantined_runs_are_claimed_at_once_beside_full_runners),
        CHECK_TEST(new_runs_do_not_cause_claims_while_runners_are_full),
        CHECK_TEST(a_claim_asks_each_pool_for_its_free_slots),
        CHECK_TEST(a_wake_up_asks_for_runs_of_its_deployment_only),
        CHECK_TEST(a_wake_up_during_a_claim_causes_another_one),
        CHECK_TEST(a_wake_up_without_a_deployment_asks_for_runs_of_all),
        CHECK_TEST(
            an_ended_run_asks_for_runs_of_the_account_if_that_has_a_limit),
        CHECK_TEST(wake_ups_do_not_postpone_the_poll_of_all_pools),
        CHECK_TEST(a_failed_claim_is_repeated_for_all_pools),
        CHECK_TEST(a_pool_that_got_all_is_due_when_it_has_a_slot),
        CHECK_TEST(pools_without_work_are_not_looked_at),
        CHECK_TEST(a_runner_that_ends_is_replaced_in_its_pool),
        CHECK_TEST(
            a_lost_claim_delays_no_claim_and_its_runs_are_searched_twice),
        CHECK_TEST(nothing_is_claimed_during_a_drain),
        CHECK_TEST(runs_of_a_dead_host_begin_again_within_30_seconds),
    };

    return CHECK_RUN(tests);
}
