/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/ core/ db/query.c db/limits.c db/send.c */
/* OBJECTS: db/connection.c db/array.c db/column.c */
/* Lines that leave shared batches; see supervisor/lease/batch_move.h. */
#include "supervisor_batches.h"

#include <time.h>

#include <apr_strings.h>

#include "../../mod_agent/core/clock.h"
#include "../../mod_agent/supervisor/lease/fair_queue.h"

static void a_split_makes_a_dedicated_batch_for_each_run(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;

    add_line(fixture, 0, 100);
    add_line(fixture, 1, 100);
    add_line(fixture, 0, 100);
    agent_batch_split_by_run(batches, first_batch(batches));
    assert_string_equal(describe(fixture), " d2 d1");
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_SHARED], 0);
    /* Later lines keep their order; those of other runs are shared. */
    add_line(fixture, 1, 100);
    add_line(fixture, 2, 100);
    assert_string_equal(describe(fixture), " s1 d2 d2");
}

/* Whether lines of the run are in shared batches, which do not wait for
 * dedicated ones. */
static bool is_shared(const fixture_t *fixture, int run)
{
    const agent_batch_t *batch;

    AGENT_RING_EACH(batch, &fixture->runs->batches.shared, agent_batch_t, link)
    {
        const agent_batch_run_t *part = apr_hash_get(
            batch->runs, fixture->leases[run]->key.run_id, 36);

        if (part != NULL && !part->is_discarded) {
            return true;
        }
    }
    return false;
}

static void a_split_moves_later_lines_of_its_runs_and_of_no_other(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    agent_batch_t *first;

    add_line(fixture, 0, 100);
    add_line(fixture, 1, 100);
    first = first_batch(batches);
    first->is_sealed = true;
    add_line(fixture, 2, 100);
    add_line(fixture, 0, 100);
    add_line(fixture, 3, 100);
    agent_batch_split_by_run(batches, first);
    agent_batch_move_step(batches);
    /* The lines of a run stay together. */
    assert_string_equal(describe(fixture), " s3 d2 d1");
    assert_false(is_shared(fixture, 0) || is_shared(fixture, 1));
    assert_true(is_shared(fixture, 2) && is_shared(fixture, 3));
    /* Later lines keep their order: the batch may be sent before the dedicated
     * one. */
    add_line(fixture, 0, 100);
    add_line(fixture, 2, 100);
    assert_string_equal(describe(fixture), " s3 s1 d3 d1");
}

/* Two runs have lines in each of that number of shared batches. */
static void fill_shared(const fixture_t *fixture, int batches)
{
    for (int i = 0; i < batches; i++) {
        add_line(fixture, 0, 100);
        add_line(fixture, 1, 200);
        last_batch(&fixture->runs->batches)->is_sealed = true;
    }
}

static void lines_that_follow_a_split_join_the_earlier_ones_of_their_run(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;

    fill_shared(fixture, 1000);
    agent_batch_split_by_run(batches, first_batch(batches));
    /* Many short lines take as long as fewer longer ones. */
    assert_int_equal(agent_batch_move_step(batches), batches->context->now);
    while (agent_batch_move_step(batches) != AGENT_CLOCK_NEVER) {
    }
    assert_string_equal(describe(fixture), " d500 d500 d500 d500");
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_SHARED], 0);
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_DEDICATED],
                     1000 * (101 + 201 + 2 * AGENT_BATCH_ITEM_BYTES)
                         + 4 * AGENT_BATCH_OWN_BYTES);
}

static void one_iteration_of_the_loop_moves_512_kb(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;

    for (int i = 0; i < 40; i++) {
        add_line(fixture, 0, AGENT_BATCH_LONG_LINE);
    }
    assert_string_equal(describe(fixture),
                        " s3 s3 s3 s3 s3 s3 s3 s3 s3 s3 s3 "
                        "s3 s3 s1");
    agent_batch_split_by_run(batches, first_batch(batches));
    assert_int_equal(agent_batch_move_step(batches), batches->context->now);
    assert_string_equal(describe(fixture),
                        " s3 s3 s3 s3 s3 s3 s3 s3 s3 s1 d12");
    /* The next one has lines of the run, whose earlier ones are not saved. */
    assert_null(agent_batch_send_next_shared(batches));
    while (agent_batch_move_step(batches) != AGENT_CLOCK_NEVER) {
    }
    assert_string_equal(describe(fixture), " d40");
}

static void lines_are_not_moved_once_the_earlier_ones_of_their_run_are_saved(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;

    fill_shared(fixture, 3);
    agent_batch_split_by_run(batches, first_batch(batches));
    assert_string_equal(describe(fixture), " s2 s2 d1 d1");
    agent_batch_remove(batches, last_batch(batches));
    agent_batch_move_step(batches);
    assert_string_equal(describe(fixture), " s2 s2 d2");
    agent_batch_remove(batches, last_batch(batches));
    agent_batch_move_step(batches);
    assert_string_equal(describe(fixture), " s2 s2");
    /* A later dedicated batch waits for both. */
    add_long_line(fixture, 1);
    agent_batch_move_step(batches);
    assert_string_equal(describe(fixture), " s2 s2 d1");
    assert_null(agent_batch_send_next_dedicated(batches));
    agent_batch_remove(batches, first_batch(batches));
    assert_null(agent_batch_send_next_dedicated(batches));
    agent_batch_remove(batches, first_batch(batches));
    assert_non_null(agent_batch_send_next_dedicated(batches));
}

static void lines_that_move_precede_those_that_came_later(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    const agent_batch_t *batch;

    fill_shared(fixture, 2);
    agent_batch_split_by_run(batches, first_batch(batches));
    add_line(fixture, 0, 300);
    assert_string_equal(describe(fixture), " s2 d1 d1 d1");
    agent_batch_move_step(batches);
    assert_string_equal(describe(fixture), " d2 d1 d2");
    batch = agent_fair_queue_first_of(&batches->dedicated,
                                      fixture->leases[0]->key.run_id);
    assert_int_equal(agent_buffer_length(&batch->text), 2 * 101);
    batch = agent_fair_queue_next_of(batch);
    assert_int_equal(agent_buffer_length(&batch->text), 301);
}

static void a_batch_all_of_whose_lines_a_split_moves_is_discarded(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    agent_batch_t *first;

    add_line(fixture, 0, 100);
    first = first_batch(batches);
    first->is_sealed = true;
    add_line(fixture, 0, 100);
    agent_batch_split_by_run(batches, first);
    agent_batch_move_step(batches);
    assert_string_equal(describe(fixture), " d2");
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_SHARED], 0);
}

static void the_lines_of_slow_runs_leave_all_shared_batches(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    apr_hash_t *slow = apr_hash_make(*state);

    add_line(fixture, 0, 100);
    add_line(fixture, 1, 100);
    first_batch(batches)->is_sealed = true;
    first_batch(batches)->is_sent = true;
    add_line(fixture, 0, 100);
    add_line(fixture, 1, 100);
    apr_hash_set(slow, fixture->leases[0]->key.run_id, 36, "");
    agent_batch_move_runs(batches, slow);
    agent_batch_move_step(batches);
    /* One in flight keeps its lines, and those after it wait. */
    assert_string_equal(describe(fixture), " s2 s2");
    agent_batch_remove(batches, first_batch(batches));
    agent_batch_move_step(batches);
    assert_string_equal(describe(fixture), " s2 d1");
    assert_false(is_shared(fixture, 0));
    assert_true(is_shared(fixture, 1));
}

/* Nine runs of a deployment have a line each in that number of shared batches,
 * then another deployment has one. */
static void fill_before_another(const fixture_t *fixture, int batches)
{
    for (int i = 0; i < batches; i++) {
        for (int run = 0; run < RUNS; run++) {
            add_line(fixture, run, 20000);
        }
    }
    agent_batch_add(&fixture->runs->batches, fixture->other, AGENT_ITEM_END,
                    "{}", 2, -1);
}

/* The next shared batch is saved in that time. */
static void save_shared(const fixture_t *fixture, apr_interval_time_t elapsed)
{
    agent_batch_queue_t *batches = &fixture->runs->batches;
    agent_batch_t *batch = agent_batch_send_next_shared(batches);

    agent_batch_send_begin(batches, batch);
    agent_batch_move_mark_slow(batches, &fixture->runs->leases, batch, elapsed);
    agent_batch_remove(batches, batch);
    while (agent_batch_move_step(batches) != AGENT_CLOCK_NEVER) {
    }
}

/* Whether the next shared batch has the line of the other deployment. */
static bool is_other_next(const fixture_t *fixture)
{
    return apr_hash_get(
               agent_batch_send_next_shared(&fixture->runs->batches)->runs,
               fixture->other->key.run_id, 36)
        != NULL;
}

static void a_slow_deployment_keeps_250_ms_of_lines_in_shared_batches(
    void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    apr_size_t most;

    fill_before_another(fixture, 6);
    most = agent_batch_send_next_shared(batches)->cost * 250 / 290;
    assert_true(batches->backlogs.sums[AGENT_BACKLOG_COST] > 4 * most);
    /* Less than 50 ms for each run, which is not slow by itself. */
    save_shared(fixture, apr_time_from_msec(290));
    /* Each run has up to five lines, which stay together. */
    assert_in_range(batches->backlogs.sums[AGENT_BACKLOG_COST], most - 150000,
                    most + 10000);
    assert_in_range(count_dedicated(batches), 1, RUNS - 1);
    save_shared(fixture, apr_time_from_msec(250));
    assert_true(is_other_next(fixture));
}

static void one_line_waits_for_few_others_after_a_slow_batch(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    fill_before_another(fixture, 80);
    save_shared(fixture, apr_time_from_msec(500));
    assert_true(is_other_next(fixture));
}

static void quick_deployments_stay_in_the_shared_batches(void **state)
{
    fixture_t *fixture = make_fixture(*state);

    fill_before_another(fixture, 3);
    save_shared(fixture, apr_time_from_msec(190));
    assert_int_equal(count_dedicated(&fixture->runs->batches), 0);
    assert_false(is_other_next(fixture));
}

static void a_deployment_is_slow_for_some_seconds(void **state)
{
    fixture_t *fixture = make_fixture(*state);
    agent_batch_queue_t *batches = &fixture->runs->batches;
    const char *deployment_id = fixture->leases[0]->deployment_id;

    fill_before_another(fixture, 2);
    save_shared(fixture, apr_time_from_msec(500));
    assert_true(agent_backlog_is_slow(&batches->backlogs, deployment_id));
    assert_false(agent_backlog_is_slow(&batches->backlogs,
                                       fixture->other->deployment_id));
    fill_before_another(fixture, 10);
    assert_true(agent_backlog_is_any_slow(&batches->backlogs));
    fixture->runs->context->now += apr_time_from_sec(60);
    /* Its lines could not leave once it is slow again. */
    agent_backlog_add(&batches->backlogs, deployment_id,
                      AGENT_BACKLOG_DEDICATED, AGENT_BATCH_MAX_DEDICATED / 3);
    assert_true(agent_backlog_is_slow(&batches->backlogs, deployment_id));
    agent_backlog_remove(&batches->backlogs, deployment_id,
                         AGENT_BACKLOG_DEDICATED,
                         AGENT_BATCH_MAX_DEDICATED / 3);
    assert_false(agent_backlog_is_slow(&batches->backlogs, deployment_id));
    assert_false(agent_backlog_is_any_slow(&batches->backlogs));
    agent_batch_clear(batches);
    assert_int_equal(batches->backlogs.sums[AGENT_BACKLOG_COST], 0);
}

/* The processor time of steps that move nothing: a slow deployment, whose runs
 * have parts in that many shared batches, has no room in dedicated ones. */
static clock_t time_steps(apr_pool_t *parent, int count)
{
    apr_pool_t *pool;
    fixture_t *fixture;
    agent_batch_queue_t *batches;
    clock_t start;

    apr_pool_create(&pool, parent);
    fixture = make_fixture(pool);
    batches = &fixture->runs->batches;
    for (int i = 0; batches->last_number < (apr_uint64_t)count; i++) {
        add_line(fixture, i % RUNS, 100);
    }
    agent_backlog_add(&batches->backlogs, fixture->leases[0]->deployment_id,
                      AGENT_BACKLOG_DEDICATED, AGENT_BATCH_MAX_DEDICATED);
    agent_backlog_set_slow(&batches->backlogs,
                           fixture->leases[0]->deployment_id, 1);
    start = clock();
    for (int i = 0; i < 1000; i++) {
        agent_batch_move_step(batches);
    }
    start = clock() - start;
    assert_false(agent_batch_send_first_shared(batches)->is_dedicated);
    assert_int_equal(count_dedicated(batches), 0);
    apr_pool_destroy(pool);
    return start;
}

/* 128 times as many: a step takes as long. */
static void a_step_does_not_visit_all_lines_of_a_run_that_has_to_stay(
    void **state)
{
    clock_t few = time_steps(*state, 4);

    assert_true(time_steps(*state, 512) < 16 * few + CLOCKS_PER_SEC / 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_split_makes_a_dedicated_batch_for_each_run),
        CHECK_TEST(a_split_moves_later_lines_of_its_runs_and_of_no_other),
        CHECK_TEST(
            lines_that_follow_a_split_join_the_earlier_ones_of_their_run),
        CHECK_TEST(one_iteration_of_the_loop_moves_512_kb),
        CHECK_TEST(
            lines_are_not_moved_once_the_earlier_ones_of_their_run_are_saved),
        CHECK_TEST(lines_that_move_precede_those_that_came_later),
        CHECK_TEST(a_batch_all_of_whose_lines_a_split_moves_is_discarded),
        CHECK_TEST(the_lines_of_slow_runs_leave_all_shared_batches),
        CHECK_TEST(a_slow_deployment_keeps_250_ms_of_lines_in_shared_batches),
        CHECK_TEST(one_line_waits_for_few_others_after_a_slow_batch),
        CHECK_TEST(quick_deployments_stay_in_the_shared_batches),
        CHECK_TEST(a_deployment_is_slow_for_some_seconds),
        CHECK_TEST(a_step_does_not_visit_all_lines_of_a_run_that_has_to_stay),
    };

    return CHECK_RUN(tests);
}
