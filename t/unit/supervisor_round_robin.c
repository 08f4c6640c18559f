/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ supervisor/lease/ supervisor/process/ */
/* OBJECTS: supervisor/runner/ supervisor/statement/ supervisor/webhook/ */
/* OBJECTS: core/ db/query.c db/limits.c db/send.c db/connection.c */
/* OBJECTS: db/array.c db/column.c */
/* Which batch is sent next; see supervisor/lease/round_robin.h. */
#include "supervisor_fixture.h"

#include <apr_strings.h>

#include "../../mod_agent/supervisor/lease/round_robin.h"

static void add(const fixture_t *fixture, int run, apr_size_t length)
{
    char *line = apr_palloc(fixture->runs->context->pool, length);

    memset(line, ' ', length);
    line[0] = '{';
    line[length - 1] = '}';
    agent_batch_add(&fixture->runs->batches, fixture->leases[run],
                    AGENT_ITEM_END, line, length, -1);
}

static void add_long(const fixture_t *fixture, int run)
{
    add(fixture, run, AGENT_BATCH_LONG_LINE + 1);
}

/* The digit of the run of a lane. */
static char run_of(const agent_batch_t *lane)
{
    assert_non_null(lane);
    assert_true(lane->is_lane);
    return *lane->lane_key;
}

/* The run whose lane is sent next: its batch fails at once. */
static char fail_next(const fixture_t *fixture)
{
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *lane = agent_round_robin_next(queue, true);
    char run = run_of(lane);

    agent_round_robin_send(queue, lane);
    agent_round_robin_fail(queue, lane, 0);
    return run;
}

/* The same, and its batch is saved. */
static char save_next(const fixture_t *fixture)
{
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *lane = agent_round_robin_next(queue, true);
    char run = run_of(lane);

    agent_round_robin_send(queue, lane);
    agent_batch_drop(queue, lane);
    return run;
}

static void shared_batches_are_sent_in_order(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *first;

    add(fixture, 0, 100);
    first = APR_RING_FIRST(&queue->waiting);
    first->is_sealed = true;
    add(fixture, 1, 100);
    assert_ptr_equal(agent_round_robin_next(queue, false), first);
    assert_null(agent_round_robin_next(queue, true));
    agent_round_robin_send(queue, first);
    agent_round_robin_fail(queue, first, 7);
    assert_ptr_equal(agent_round_robin_next(queue, false), first);
    assert_int_equal(agent_round_robin_due(queue, first), 7);
}

static void a_run_whose_batch_failed_waits_for_one_turn_of_the_others(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);

    add_long(fixture, 0);
    add_long(fixture, 1);
    add_long(fixture, 2);
    assert_int_equal(fail_next(fixture), '0');
    assert_int_equal(fail_next(fixture), '1');
    add_long(fixture, 3);
    assert_int_equal(save_next(fixture), '2');
    assert_int_equal(fail_next(fixture), '0');
    assert_int_equal(fail_next(fixture), '1');
    assert_int_equal(save_next(fixture), '3');
    assert_int_equal(save_next(fixture), '0');
}

static void the_batches_of_one_run_take_turns_with_others(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    for (int i = 0; i < 3; i++) {
        add(fixture, 0, AGENT_BATCH_LANE_BYTES);
    }
    add_long(fixture, 1);
    add(fixture, 1, AGENT_BATCH_LANE_BYTES);
    assert_int_equal(save_next(fixture), '0');
    assert_int_equal(save_next(fixture), '1');
    assert_int_equal(save_next(fixture), '0');
    assert_int_equal(save_next(fixture), '1');
    assert_int_equal(save_next(fixture), '0');
}

static void set_deployment(const fixture_t *fixture, int run, const char *id)
{
    apr_cpystrn(fixture->leases[run]->deployment_id, id, AGENT_UUID_SIZE);
}

static void deployments_take_turns_however_many_runs_they_have(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    for (int i = 0; i < 8; i++) {
        set_deployment(fixture, i, "many");
        add_long(fixture, i);
    }
    assert_int_equal(fail_next(fixture), '0');
    set_deployment(fixture, 8, "one");
    add_long(fixture, 8);
    assert_int_equal(fail_next(fixture), '1');
    assert_int_equal(fail_next(fixture), '8');
    assert_int_equal(save_next(fixture), '2');
    assert_int_equal(save_next(fixture), '8');
    /* None of it is left: it begins after the other one. */
    add_long(fixture, 8);
    assert_int_equal(fail_next(fixture), '3');
    assert_int_equal(save_next(fixture), '8');
    assert_int_equal(save_next(fixture), '4');
}

static void a_run_that_begins_later_does_not_put_its_deployment_first(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);

    set_deployment(fixture, 0, "a");
    set_deployment(fixture, 1, "a");
    set_deployment(fixture, 2, "b");
    add_long(fixture, 0);
    add_long(fixture, 2);
    assert_int_equal(fail_next(fixture), '0');
    add_long(fixture, 1);
    assert_int_equal(fail_next(fixture), '2');
    assert_int_equal(fail_next(fixture), '0');
    assert_int_equal(fail_next(fixture), '2');
    assert_int_equal(fail_next(fixture), '1');
}

static void the_lanes_of_a_split_batch_take_turns_by_deployment(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;

    set_deployment(fixture, 0, "a");
    set_deployment(fixture, 1, "a");
    set_deployment(fixture, 2, "b");
    for (int i = 0; i < 3; i++) {
        add(fixture, i, 100);
    }
    agent_batch_split(queue, APR_RING_FIRST(&queue->waiting));
    assert_int_equal(fail_next(fixture), '0');
    assert_int_equal(fail_next(fixture), '2');
    assert_int_equal(fail_next(fixture), '1');
}

static void a_lane_that_is_due_precedes_one_that_is_not(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *lane;

    fixture->runs->context->now = 10;
    add_long(fixture, 0);
    add_long(fixture, 1);
    lane = agent_round_robin_next(queue, true);
    agent_round_robin_send(queue, lane);
    agent_round_robin_fail(queue, lane, 20);
    assert_int_equal(fail_next(fixture), '1');
    assert_int_equal(fail_next(fixture), '1');
    fixture->runs->context->now = 20;
    assert_int_equal(fail_next(fixture), '0');
}

static void a_lane_waits_for_earlier_lines_of_its_run(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;

    add(fixture, 0, 100);
    add_long(fixture, 0);
    assert_null(agent_round_robin_next(queue, true));
    add_long(fixture, 1);
    assert_int_equal(run_of(agent_round_robin_next(queue, true)), '1');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(shared_batches_are_sent_in_order),
        CHECK_TEST(a_run_whose_batch_failed_waits_for_one_turn_of_the_others),
        CHECK_TEST(the_batches_of_one_run_take_turns_with_others),
        CHECK_TEST(deployments_take_turns_however_many_runs_they_have),
        CHECK_TEST(a_run_that_begins_later_does_not_put_its_deployment_first),
        CHECK_TEST(the_lanes_of_a_split_batch_take_turns_by_deployment),
        CHECK_TEST(a_lane_that_is_due_precedes_one_that_is_not),
        CHECK_TEST(a_lane_waits_for_earlier_lines_of_its_run),
    };

    return CHECK_RUN(tests);
}
