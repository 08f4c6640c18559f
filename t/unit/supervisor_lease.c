/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* The table of leases; see supervisor/lease/lease.h. */
#include "supervisor_fixture.h"

/* The fixture has ten leases, nine of them of its first runner. */

static void a_lease_is_found_by_run_and_epoch(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_lease_key_t key = fixture->leases[3]->key;

    assert_ptr_equal(agent_lease_find(&fixture->runs->leases, &key),
                     fixture->leases[3]);
    key.epoch++;
    assert_null(agent_lease_find(&fixture->runs->leases, &key));
}

static void a_lease_lives_until_both_sides_have_ended(void **state)
{
    for (int first = 0; first < 2; first++) {
        fixture_t *fixture = make_fixture(*state);
        agent_lease_table_t *table = &fixture->runs->leases;
        agent_lease_t *lease = fixture->leases[0];
        agent_lease_key_t key = lease->key;

        for (int i = 0; i < 2; i++) {
            assert_non_null(agent_lease_find(table, &key));
            if (i == first) {
                agent_lease_detach(table, lease);
            }
            else {
                agent_lease_set_state(table, lease, AGENT_LEASE_GONE);
            }
        }
        assert_null(agent_lease_find(table, &key));
    }
}

static void held_leases_and_waiting_leases_are_counted(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_lease_table_t *table = &fixture->runs->leases;

    assert_int_equal(table->held, RUNS + 1);
    assert_int_equal(table->waiting, RUNS + 1);
    agent_lease_start(table, fixture->leases[0]);
    assert_int_equal(table->waiting, RUNS);
    agent_lease_set_state(table, fixture->leases[0], AGENT_LEASE_ENDED);
    agent_lease_set_state(table, fixture->leases[0], AGENT_LEASE_GONE);
    assert_int_equal(table->held, RUNS);
    agent_lease_detach(table, fixture->leases[1]);
    assert_int_equal(table->waiting, RUNS - 1);
    agent_lease_set_state(table, fixture->leases[1], AGENT_LEASE_GONE);
    assert_int_equal(table->waiting, RUNS - 1);
    assert_int_equal(table->held, RUNS - 1);
}

static void a_group_sums_the_start_lines_of_its_started_runs(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_lease_table_t *table = &fixture->runs->leases;
    const agent_lease_group_t *group = &fixture->runner->group;

    for (int i = 0; i < 3; i++) {
        fixture->leases[i]->start_bytes = 1000;
    }
    agent_lease_start(table, fixture->leases[0]);
    agent_lease_start(table, fixture->leases[1]);
    assert_int_equal(group->started_bytes, 2000);
    assert_int_equal(group->active, RUNS);
    agent_lease_detach(table, fixture->leases[0]);
    /* This run has not started. */
    agent_lease_detach(table, fixture->leases[2]);
    assert_int_equal(group->started_bytes, 1000);
    assert_int_equal(group->active, RUNS - 2);
}

static void the_memory_of_an_ended_lease_is_reused(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_lease_table_t *table = &fixture->runs->leases;
    agent_lease_t *lease = fixture->leases[0];

    lease->credit.unsaved = 5;
    agent_lease_detach(table, lease);
    agent_lease_set_state(table, lease, AGENT_LEASE_GONE);
    assert_ptr_equal(add_lease(fixture->runs, fixture->runner, 'z'), lease);
    assert_int_equal(lease->credit.unsaved, 0);
    assert_int_equal(lease->key.run_id[0], 'z');
}

static void the_time_limit_of_the_pool_begins_when_the_run_starts(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_context_t *context = fixture->runs->context;

    agent_lease_start(&fixture->runs->leases, fixture->leases[0]);
    assert_true(fixture->leases[0]->deadline == AGENT_CLOCK_NEVER);
    fixture->runner->group.run_timeout = apr_time_from_sec(5);
    context->now = apr_time_from_sec(100);
    assert_true(fixture->leases[1]->deadline == AGENT_CLOCK_NEVER);
    agent_lease_start(&fixture->runs->leases, fixture->leases[1]);
    assert_int_equal(fixture->leases[1]->deadline, apr_time_from_sec(105));
    agent_lease_start(&fixture->runs->leases, fixture->other);
    assert_true(fixture->other->deadline == AGENT_CLOCK_NEVER);
}

static void each_quarantine_is_six_times_as_long_as_the_one_before(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    fixture->runs->context->timing.quarantine = apr_time_from_sec(10);
    fixture->leases[1]->quarantines_passed = 1;
    fixture->leases[2]->quarantines_passed = 2;
    for (int i = 0, sec = 10; i < 3; i++, sec *= 6) {
        agent_lease_start(&fixture->runs->leases, fixture->leases[i]);
        assert_int_equal(fixture->leases[i]->quarantine_end,
                         apr_time_from_sec(sec));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_lease_is_found_by_run_and_epoch),
        CHECK_TEST(a_lease_lives_until_both_sides_have_ended),
        CHECK_TEST(held_leases_and_waiting_leases_are_counted),
        CHECK_TEST(a_group_sums_the_start_lines_of_its_started_runs),
        CHECK_TEST(the_memory_of_an_ended_lease_is_reused),
        CHECK_TEST(the_time_limit_of_the_pool_begins_when_the_run_starts),
        CHECK_TEST(each_quarantine_is_six_times_as_long_as_the_one_before),
    };

    return CHECK_RUN(tests);
}
