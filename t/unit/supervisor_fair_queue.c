/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Which batch is sent next; see supervisor/lease/fair_queue.h. */
#include "supervisor_batches.h"

#include <apr_strings.h>

#include "../../mod_agent/supervisor/lease/fair_queue.h"

/* The digit of the run of a dedicated batch. */
static char run_of(const agent_batch_t *batch)
{
    assert_non_null(batch);
    assert_true(batch->is_dedicated);
    return *batch->run_id;
}

/* The run whose dedicated batch is sent next: it fails after that time. */
static char fail_next(const fixture_t *fixture, apr_interval_time_t used)
{
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *batch = agent_batch_send_next_dedicated(queue);
    char run = run_of(batch);

    agent_batch_send_begin(queue, batch);
    fixture->runs->context->now += used;
    agent_batch_send_fail(queue, batch, 0);
    return run;
}

/* The same, and its batch is saved. */
static char save_next(const fixture_t *fixture, apr_interval_time_t used)
{
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *batch = agent_batch_send_next_dedicated(queue);
    char run = run_of(batch);

    agent_batch_send_begin(queue, batch);
    fixture->runs->context->now += used;
    agent_batch_remove(queue, batch);
    return run;
}

/* How many accounts, deployments and runs are known. */
static int count_shares(const fixture_t *fixture)
{
    const agent_batch_queue_t *queue = &fixture->runs->batches;
    int count = 0;

    for (int i = 0; i < AGENT_FAIR_LEVELS; i++) {
        count += (int)apr_hash_count(queue->dedicated.shares[i]);
    }
    return count;
}

static void set_deployment(const fixture_t *fixture, int run, const char *id)
{
    apr_cpystrn(fixture->leases[run]->deployment_id, id, AGENT_UUID_SIZE);
}

static void shared_batches_are_sent_in_order(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *first;

    add_line(fixture, 0, 100);
    first = first_batch(queue);
    first->is_sealed = true;
    add_line(fixture, 1, 100);
    assert_ptr_equal(agent_batch_send_next_shared(queue), first);
    assert_null(agent_batch_send_next_dedicated(queue));
    agent_batch_send_begin(queue, first);
    agent_batch_send_fail(queue, first, 7);
    assert_ptr_equal(agent_batch_send_next_shared(queue), first);
    assert_int_equal(agent_batch_due(first, 0), 7);
}

#define SLOW  apr_time_from_sec(5)
#define QUICK apr_time_from_msec(10)

static void one_slow_run_delays_eight_quick_ones_by_one_attempt(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    for (int i = 1; i < RUNS; i++) {
        set_deployment(fixture, i, "quick");
        add_long_line(fixture, i);
    }
    set_deployment(fixture, 0, "slow");
    add_long_line(fixture, 0);
    assert_int_equal(fail_next(fixture, SLOW), '0');
    for (int i = 1; i < RUNS; i++) {
        assert_int_equal(save_next(fixture, QUICK), '0' + i);
        /* Its end, while its output was in flight: the same deployment. */
        add_long_line(fixture, i);
    }
    for (int i = 1; i < RUNS; i++) {
        assert_int_not_equal(save_next(fixture, QUICK), '0');
    }
    assert_int_equal(fail_next(fixture, SLOW), '0');
    assert_int_equal(save_next(fixture, SLOW), '0');
    assert_int_equal(count_shares(fixture), 0);
}

static void eight_slow_runs_delay_a_quick_one_by_one_attempt(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;

    for (int i = 0; i < 8; i++) {
        set_deployment(fixture, i, "slow");
        add_long_line(fixture, i);
    }
    set_deployment(fixture, 8, "quick");
    for (int i = 0; i < 8; i++) {
        agent_batch_t *batch = agent_batch_send_next_dedicated(queue);

        assert_int_equal(run_of(batch), '0' + i);
        agent_batch_send_begin(queue, batch);
        add_long_line(fixture, 8);
        fixture->runs->context->now += SLOW;
        agent_batch_send_fail(queue, batch, 0);
        assert_int_equal(save_next(fixture, QUICK), '8');
    }
}

static void the_runs_of_a_deployment_share_its_time(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    for (int i = 0; i < 3; i++) {
        add_long_line(fixture, i);
    }
    assert_int_equal(fail_next(fixture, SLOW), '0');
    assert_int_equal(fail_next(fixture, QUICK), '1');
    assert_int_equal(fail_next(fixture, QUICK), '2');
    assert_int_equal(fail_next(fixture, QUICK), '1');
    assert_int_equal(save_next(fixture, SLOW), '2');
    assert_int_equal(save_next(fixture, SLOW), '1');
    assert_int_equal(save_next(fixture, QUICK), '0');
}

static void a_run_that_waits_for_each_reply_is_charged_as_others(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    for (int i = 3; i >= 0; i--) {
        set_deployment(fixture, i, i == 0 ? "slow" : "quick");
        add_long_line(fixture, i);
    }
    assert_int_equal(save_next(fixture, SLOW), '0');
    add_long_line(fixture, 0);
    for (int i = 3; i > 0; i--) {
        assert_int_equal(save_next(fixture, QUICK), '0' + i);
    }
    assert_int_equal(save_next(fixture, SLOW), '0');
    /* Nothing waited: all begin again. */
    add_long_line(fixture, 1);
    add_long_line(fixture, 0);
    assert_int_equal(fail_next(fixture, SLOW), '0');
    assert_int_equal(fail_next(fixture, QUICK), '1');
}

static void a_run_that_newly_waits_has_not_saved_up_time(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    add_long_line(fixture, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fail_next(fixture, SLOW), '0');
    }
    add_long_line(fixture, 1);
    assert_int_equal(fail_next(fixture, SLOW), '0');
    assert_int_equal(fail_next(fixture, SLOW), '1');
    assert_int_equal(fail_next(fixture, QUICK), '0');
    assert_int_equal(fail_next(fixture, QUICK), '1');
}

static void the_end_of_a_quick_run_is_sent_after_its_output(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *batch;

    set_deployment(fixture, 0, "slow");
    set_deployment(fixture, 1, "quick");
    add_long_line(fixture, 1);
    add_long_line(fixture, 0);
    assert_int_equal(fail_next(fixture, SLOW), '0');
    batch = agent_batch_send_next_dedicated(queue);
    assert_int_equal(run_of(batch), '1');
    agent_batch_send_begin(queue, batch);
    add_line(fixture, 1, 100);
    fixture->runs->context->now += QUICK;
    agent_batch_remove(queue, batch);
    assert_int_equal(save_next(fixture, QUICK), '1');
    assert_int_equal(save_next(fixture, SLOW), '0');
}

static void attempts_that_take_no_time_are_taken_in_turn(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    add_long_line(fixture, 0);
    add_long_line(fixture, 1);
    assert_int_equal(fail_next(fixture, 0), '0');
    assert_int_equal(fail_next(fixture, 0), '1');
    assert_int_equal(fail_next(fixture, 0), '0');
}

static void the_batches_of_one_run_share_the_time_with_others(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    for (int i = 0; i < 3; i++) {
        add_line(fixture, 0, AGENT_BATCH_DEDICATED_BYTES);
    }
    add_long_line(fixture, 1);
    add_line(fixture, 1, AGENT_BATCH_DEDICATED_BYTES);
    assert_int_equal(save_next(fixture, QUICK), '0');
    assert_int_equal(save_next(fixture, QUICK), '1');
    assert_int_equal(save_next(fixture, QUICK), '0');
    assert_int_equal(save_next(fixture, QUICK), '1');
    assert_int_equal(save_next(fixture, QUICK), '0');
}

static void shares_that_say_nothing_are_forgotten(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    /* One waits all the time. */
    add_line(fixture, 0, AGENT_BATCH_LONG_LINE + 1);
    for (int round = 0; round < 50; round++) {
        for (int i = 1; i < RUNS; i++) {
            set_deployment(fixture, i, apr_psprintf(*state, "%d.%d", round, i));
            add_long_line(fixture, i);
        }
        fail_next(fixture, QUICK);
        for (int i = 1; i < RUNS; i++) {
            fail_next(fixture, QUICK);
        }
        for (int i = 1; i < RUNS; i++) {
            save_next(fixture, QUICK);
        }
        assert_true(count_shares(fixture) <= 4 * RUNS);
    }
}

static void the_dedicated_batches_of_a_split_batch_are_those_of_deployments(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;

    set_deployment(fixture, 0, "a");
    set_deployment(fixture, 1, "a");
    set_deployment(fixture, 2, "b");
    for (int i = 0; i < 3; i++) {
        add_line(fixture, i, 100);
    }
    agent_batch_split_by_run(queue, first_batch(queue));
    assert_int_equal(fail_next(fixture, 1), '2');
    assert_int_equal(fail_next(fixture, 1), '0');
    assert_int_equal(fail_next(fixture, 1), '2');
    assert_int_equal(fail_next(fixture, 1), '1');
}

static void a_dedicated_batch_that_is_due_precedes_one_that_is_not(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *batch;

    fixture->runs->context->now = 10;
    add_long_line(fixture, 0);
    add_long_line(fixture, 1);
    batch = agent_batch_send_next_dedicated(queue);
    agent_batch_send_begin(queue, batch);
    agent_batch_send_fail(queue, batch, 20);
    assert_int_equal(fail_next(fixture, 1), '1');
    assert_int_equal(fail_next(fixture, 1), '1');
    fixture->runs->context->now = 20;
    assert_int_equal(fail_next(fixture, 1), '0');
}

static void a_dedicated_batch_waits_for_earlier_lines_of_its_run(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;

    add_line(fixture, 0, 100);
    add_long_line(fixture, 0);
    assert_null(agent_batch_send_next_dedicated(queue));
    add_long_line(fixture, 1);
    assert_int_equal(run_of(agent_batch_send_next_dedicated(queue)), '1');
}

/* A new run, whose id begins with 'n', has a dedicated batch. */
static void add_new_run(const fixture_t *fixture, int number,
                        const char *deployment_id)
{
    apr_pool_t *pool = fixture->runs->context->pool;
    agent_lease_t *lease = apr_pcalloc(pool, sizeof(*lease));

    memcpy(lease->key.run_id, apr_psprintf(pool, "n%035d", number), 36);
    apr_cpystrn(lease->deployment_id, deployment_id, AGENT_UUID_SIZE);
    lease->is_refused = true;
    agent_batch_add(&fixture->runs->batches, lease, AGENT_ITEM_END, "{}", 2,
                    -1);
}

/* Saves that many batches; while one is in flight its run has another one, or
 * ends and a new run begins. Returns how many of them are of run 0. */
static int count_served(const fixture_t *fixture, int attempts,
                        apr_interval_time_t used)
{
    agent_batch_queue_t *queue = &fixture->runs->batches;
    int served = 0;

    for (int i = 0; i < attempts; i++) {
        agent_batch_t *batch = agent_batch_send_next_dedicated(queue);

        agent_batch_send_begin(queue, batch);
        if (run_of(batch) == '0') {
            served++;
            add_long_line(fixture, 0);
        }
        else {
            add_new_run(fixture, i, fixture->leases[0]->deployment_id);
        }
        fixture->runs->context->now += used;
        agent_batch_remove(queue, batch);
        assert_true(count_shares(fixture) < 12);
    }
    return served;
}

/* Three runs of a deployment wait; a fourth one begins during each attempt. */
static void check_stream(apr_pool_t *pool, apr_interval_time_t used)
{
    fixture_t *fixture = make_fixture(pool);
    const char *deployment_id = fixture->leases[0]->deployment_id;

    add_long_line(fixture, 0);
    add_new_run(fixture, 20001, deployment_id);
    add_new_run(fixture, 20002, deployment_id);
    assert_in_range(count_served(fixture, 10000, used), 2500, 3334);
}

static void a_stream_of_new_runs_does_not_starve_an_older_one(void **state)
{
    check_stream(*state, QUICK);
}

static void a_stream_of_attempts_that_take_no_time_starves_none(void **state)
{
    check_stream(*state, 0);
}

static void a_run_served_alone_is_not_behind_one_that_begins_later(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;

    add_long_line(fixture, 0);
    for (int i = 0; i < 100; i++) {
        agent_batch_t *batch = agent_batch_send_next_dedicated(queue);

        assert_int_equal(run_of(batch), '0');
        agent_batch_send_begin(queue, batch);
        fixture->runs->context->now += SLOW / 2;
        add_long_line(fixture, 1);
        fixture->runs->context->now += SLOW / 2;
        agent_batch_send_fail(queue, batch, 0);
        assert_int_equal(save_next(fixture, QUICK), '1');
    }
    add_long_line(fixture, 2);
    assert_int_equal(fail_next(fixture, SLOW), '2');
    assert_int_equal(fail_next(fixture, SLOW), '0');
}

static void time_in_which_the_supervisor_is_stopped_is_not_charged(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    set_deployment(fixture, 0, "a");
    set_deployment(fixture, 1, "b");
    add_long_line(fixture, 1);
    add_long_line(fixture, 0);
    assert_int_equal(fail_next(fixture, apr_time_from_sec(600)), '0');
    /* The limit of a statement on the output connection. */
    assert_int_equal(fail_next(fixture, SLOW), '1');
    assert_int_equal(fail_next(fixture, SLOW), '1');
    assert_int_equal(fail_next(fixture, SLOW), '0');
}

static void a_new_deployment_precedes_those_that_begin_with_it(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *batch;

    for (int i = 0; i < 100; i++) {
        add_new_run(fixture, i, apr_psprintf(*state, "slow%d", i));
    }
    batch = agent_batch_send_next_dedicated(queue);
    agent_batch_send_begin(queue, batch);
    add_long_line(fixture, 0);
    fixture->runs->context->now += SLOW;
    agent_batch_send_fail(queue, batch, 0);
    assert_int_equal(save_next(fixture, QUICK), '0');
}

static void an_account_has_one_share_however_many_deployments(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;
    const agent_fair_share_t *share;

    agent_account_map_set(&queue->accounts, "quick", "one");
    for (int i = 0; i < 100; i++) {
        const char *deployment = apr_psprintf(*state, "slow%d", i);

        agent_account_map_set(&queue->accounts, deployment, "other");
        add_new_run(fixture, i, deployment);
    }
    set_deployment(fixture, 0, "quick");
    for (int i = 0; i < 100; i++) {
        agent_batch_t *slow = agent_batch_send_next_dedicated(queue);

        assert_int_equal(run_of(slow), 'n');
        agent_batch_send_begin(queue, slow);
        fixture->runs->context->now += SLOW;
        add_long_line(fixture, 0);
        agent_batch_send_fail(queue, slow, 0);
        assert_int_equal(save_next(fixture, QUICK), '0');
    }
    /* And the deployments of the other one take turns. */
    AGENT_RING_EACH(share, &queue->dedicated.runs, agent_fair_share_t, link)
    {
        assert_int_equal(share->start_tag, SLOW);
    }
}

static void lines_of_a_split_batch_are_sent_before_later_ones(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *queue = &fixture->runs->batches;
    agent_batch_t *batch;

    add_line(fixture, 0, 100);
    first_batch(queue)->is_sealed = true;
    add_line(fixture, 0, 200);
    add_long_line(fixture, 0);
    agent_batch_split_by_run(queue, first_batch(queue));
    agent_batch_move_step(queue);
    for (int i = 0; i < 2; i++) {
        batch = agent_batch_send_next_dedicated(queue);
        assert_int_equal(agent_buffer_length(&batch->text),
                         i == 0 ? 101 + 201 : AGENT_BATCH_LONG_LINE + 2);
        agent_batch_send_begin(queue, batch);
        assert_null(agent_batch_send_next_dedicated(queue));
        agent_batch_remove(queue, batch);
    }
    assert_int_equal(count_shares(fixture), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(shared_batches_are_sent_in_order),
        CHECK_TEST(one_slow_run_delays_eight_quick_ones_by_one_attempt),
        CHECK_TEST(eight_slow_runs_delay_a_quick_one_by_one_attempt),
        CHECK_TEST(the_runs_of_a_deployment_share_its_time),
        CHECK_TEST(a_run_that_waits_for_each_reply_is_charged_as_others),
        CHECK_TEST(a_run_that_newly_waits_has_not_saved_up_time),
        CHECK_TEST(the_end_of_a_quick_run_is_sent_after_its_output),
        CHECK_TEST(attempts_that_take_no_time_are_taken_in_turn),
        CHECK_TEST(the_batches_of_one_run_share_the_time_with_others),
        CHECK_TEST(shares_that_say_nothing_are_forgotten),
        CHECK_TEST(
            the_dedicated_batches_of_a_split_batch_are_those_of_deployments),
        CHECK_TEST(a_dedicated_batch_that_is_due_precedes_one_that_is_not),
        CHECK_TEST(a_dedicated_batch_waits_for_earlier_lines_of_its_run),
        CHECK_TEST(a_stream_of_new_runs_does_not_starve_an_older_one),
        CHECK_TEST(a_stream_of_attempts_that_take_no_time_starves_none),
        CHECK_TEST(a_run_served_alone_is_not_behind_one_that_begins_later),
        CHECK_TEST(time_in_which_the_supervisor_is_stopped_is_not_charged),
        CHECK_TEST(a_new_deployment_precedes_those_that_begin_with_it),
        CHECK_TEST(an_account_has_one_share_however_many_deployments),
        CHECK_TEST(lines_of_a_split_batch_are_sent_before_later_ones),
    };

    return CHECK_RUN(tests);
}
