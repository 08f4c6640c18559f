/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/pending.c core/clock.c */
/* Which runs may receive more text, and which may begin nodes, while memory is
 * short. */
#include "check.h"

#include "core/clock.h"
#include "runners/builtin/run/pending.h"

#define NOW ((apr_time_t)1000)
/* Memory that runs may take together when they begin: growth is limited from
 * 10 nodes on, and growing runs have room up to 14. */
#define MEMORY (8 * RUNNER_PENDING_NODE)

/* Sets the memory that runs take to a value that leaves room for `nodes` nodes,
 * at most 4. */
static bool set_room(runner_pending_t *pending, int nodes)
{
    return runner_pending_set_memory(
        pending, (14 - (size_t)nodes) * RUNNER_PENDING_NODE, MEMORY);
}

static void below_the_limit_every_run_receives(void **state)
{
    runner_pending_t pending = {.bytes_max = 10 * RUNNER_PENDING_SMALL};
    size_t first = 0;

    runner_pending_set(&pending, &first, 9 * RUNNER_PENDING_SMALL, NOW);
    assert_int_equal(pending.bytes, 9 * RUNNER_PENDING_SMALL);
    assert_false(runner_pending_is_paused(&pending, &first, NOW));
}

static void above_the_limit_one_run_receives_until_it_is_done(void **state)
{
    runner_pending_t pending = {.bytes_max = RUNNER_PENDING_SMALL};
    size_t first = 0;
    size_t second = 0;
    size_t small = 0;

    runner_pending_set(&pending, &first, RUNNER_PENDING_SMALL + 1, NOW);
    runner_pending_set(&pending, &second, RUNNER_PENDING_SMALL + 1, NOW);
    runner_pending_set(&pending, &small, RUNNER_PENDING_SMALL, NOW);
    assert_false(runner_pending_is_paused(&pending, &second, NOW));
    assert_true(runner_pending_is_paused(&pending, &first, NOW));
    assert_false(runner_pending_is_paused(&pending, &small, NOW));
    runner_pending_set(&pending, &second, 2 * RUNNER_PENDING_SMALL, NOW);
    assert_false(runner_pending_is_paused(&pending, &second, NOW));
    runner_pending_set(&pending, &second, 0, NOW);
    assert_false(runner_pending_is_paused(&pending, &first, NOW));
    runner_pending_set(&pending, &first, 0, NOW);
    assert_int_equal(pending.bytes, RUNNER_PENDING_SMALL);
}

static void one_run_receives_while_memory_is_short(void **state)
{
    runner_pending_t pending = {.bytes_max = 10 * RUNNER_PENDING_SMALL,
                                .limits_receiving = true};
    size_t first = 0;
    size_t second = 0;

    runner_pending_set(&pending, &first, RUNNER_PENDING_SMALL + 1, NOW);
    runner_pending_set(&pending, &second, RUNNER_PENDING_SMALL + 1, NOW);
    assert_false(runner_pending_is_paused(&pending, &first, NOW));
    assert_true(runner_pending_is_paused(&pending, &second, NOW));
    pending.limits_receiving = false;
    assert_false(runner_pending_is_paused(&pending, &second, NOW));
}

static void a_receiver_without_progress_is_replaced(void **state)
{
    runner_pending_t pending = {.bytes_max = 2 * RUNNER_PENDING_SMALL};
    apr_time_t later = NOW + RUNNER_PENDING_IDLE;
    size_t slow = 0;
    size_t fast = 0;

    runner_pending_set(&pending, &slow, RUNNER_PENDING_SMALL + 1, NOW);
    runner_pending_set(&pending, &fast, RUNNER_PENDING_SMALL + 1, NOW);
    assert_false(runner_pending_is_paused(&pending, &slow, NOW));
    assert_int_equal(runner_pending_wake_at(&pending, NOW), AGENT_CLOCK_NEVER);
    assert_true(runner_pending_is_paused(&pending, &fast, later - 1));
    assert_int_equal(runner_pending_wake_at(&pending, NOW), later);
    assert_false(runner_pending_is_paused(&pending, &fast, later));
    assert_true(runner_pending_is_paused(&pending, &slow, later));
}

static void a_receiver_with_progress_is_not_replaced(void **state)
{
    runner_pending_t pending = {.bytes_max = 2 * RUNNER_PENDING_SMALL};
    apr_time_t later = NOW + RUNNER_PENDING_IDLE;
    size_t first = 0;
    size_t second = 0;

    runner_pending_set(&pending, &first, RUNNER_PENDING_SMALL + 1, NOW);
    runner_pending_set(&pending, &second, RUNNER_PENDING_SMALL + 1, NOW);
    assert_false(runner_pending_is_paused(&pending, &first, NOW));
    runner_pending_set(&pending, &first, RUNNER_PENDING_SMALL + 2, later - 1);
    assert_true(runner_pending_is_paused(&pending, &second, later));
    assert_false(runner_pending_is_paused(&pending, &first, later));
}

static void a_receiver_with_slow_progress_is_replaced_after_its_turn(
    void **state)
{
    runner_pending_t pending = {.bytes_max = 2 * RUNNER_PENDING_SMALL};
    apr_time_t over = NOW + RUNNER_PENDING_SLICE;
    size_t slow = 0;
    size_t other = 0;

    runner_pending_set(&pending, &slow, RUNNER_PENDING_SMALL + 1, NOW);
    runner_pending_set(&pending, &other, RUNNER_PENDING_SMALL + 1, NOW);
    for (apr_time_t now = NOW; now < over; now += RUNNER_PENDING_IDLE / 2) {
        assert_false(runner_pending_is_paused(&pending, &slow, now));
        assert_true(runner_pending_is_paused(&pending, &other, now));
        runner_pending_set(&pending, &slow, slow + 1, now);
    }
    assert_int_equal(runner_pending_wake_at(&pending, over - 1), over);
    assert_true(runner_pending_is_paused(&pending, &other, over - 1));
    assert_false(runner_pending_is_paused(&pending, &other, over));
    assert_true(runner_pending_is_paused(&pending, &slow, over));
}

static void no_receiver_is_replaced_at_twice_the_limit(void **state)
{
    runner_pending_t pending = {.bytes_max = RUNNER_PENDING_SMALL};
    apr_time_t later = NOW + RUNNER_PENDING_IDLE;
    size_t slow = 0;
    size_t other = 0;

    runner_pending_set(&pending, &slow, RUNNER_PENDING_SMALL + 1, NOW);
    runner_pending_set(&pending, &other, RUNNER_PENDING_SMALL + 1, NOW);
    assert_false(runner_pending_is_paused(&pending, &slow, NOW));
    assert_true(runner_pending_is_paused(&pending, &other, later));
    assert_int_equal(runner_pending_wake_at(&pending, NOW), AGENT_CLOCK_NEVER);
}

static void while_growth_is_limited_runs_begin_nodes_one_after_the_other(
    void **state)
{
    runner_pending_t pending = {.limits_growth = false};
    size_t first = 0;
    size_t second = 0;

    assert_true(runner_pending_begin_step(&pending, &second, NOW));
    pending.limits_growth = true;
    assert_true(runner_pending_begin_step(&pending, &first, NOW));
    assert_false(runner_pending_begin_step(&pending, &second, NOW));
    assert_true(runner_pending_begin_step(&pending, &first, NOW));
    assert_false(runner_pending_end_run(&pending, &second));
    assert_true(runner_pending_end_run(&pending, &first));
    assert_true(runner_pending_begin_step(&pending, &second, NOW));
}

static void a_second_run_begins_nodes_while_there_is_memory_for_two(
    void **state)
{
    runner_pending_t pending = {.limits_growth = true};
    size_t first = 0;
    size_t second = 0;
    size_t third = 0;

    set_room(&pending, 2);
    assert_true(runner_pending_begin_step(&pending, &first, NOW));
    assert_true(runner_pending_begin_step(&pending, &second, NOW));
    assert_false(runner_pending_begin_step(&pending, &third, NOW));
    assert_false(set_room(&pending, 1));
    assert_false(runner_pending_begin_step(&pending, &second, NOW));
    assert_true(set_room(&pending, 2));
    assert_false(set_room(&pending, 2));
    assert_true(runner_pending_begin_step(&pending, &second, NOW));
    assert_true(runner_pending_end_run(&pending, &second));
    assert_true(runner_pending_begin_step(&pending, &third, NOW));
}

static void a_growing_run_without_progress_is_replaced(void **state)
{
    runner_pending_t pending = {.limits_growth = true};
    apr_time_t later = NOW + RUNNER_PENDING_IDLE;
    size_t first = 0;
    size_t second = 0;
    size_t third = 0;

    set_room(&pending, 2);
    assert_true(runner_pending_begin_step(&pending, &first, NOW + 2));
    assert_true(runner_pending_begin_step(&pending, &second, NOW));
    assert_int_equal(runner_pending_wake_at(&pending, NOW), AGENT_CLOCK_NEVER);
    assert_false(runner_pending_begin_step(&pending, &third, NOW));
    assert_int_equal(runner_pending_wake_at(&pending, NOW), later);
    runner_pending_set(&pending, &second, 1, NOW + 1);
    assert_int_equal(runner_pending_wake_at(&pending, NOW), later + 1);
    assert_false(runner_pending_begin_step(&pending, &third, later));
    assert_true(runner_pending_begin_step(&pending, &third, later + 1));
    assert_false(runner_pending_begin_step(&pending, &second, later + 1));
    assert_true(runner_pending_begin_step(&pending, &second, later + 2));
    assert_false(runner_pending_begin_step(&pending, &first, later + 2));
}

static void a_run_that_grows_slowly_is_replaced_after_its_turn(void **state)
{
    runner_pending_t pending = {.limits_growth = true};
    apr_time_t over = NOW + RUNNER_PENDING_SLICE;
    size_t slow[2] = {0, 0};
    size_t other = 0;

    set_room(&pending, 2);
    assert_true(runner_pending_begin_step(&pending, &slow[0], NOW));
    assert_true(runner_pending_begin_step(&pending, &slow[1], NOW + 1));
    for (apr_time_t now = NOW; now < over; now += RUNNER_PENDING_IDLE / 2) {
        assert_false(runner_pending_begin_step(&pending, &other, now));
        runner_pending_set(&pending, &slow[0], slow[0] + 1, now);
        runner_pending_set(&pending, &slow[1], slow[1] + 1, now);
    }
    assert_int_equal(runner_pending_wake_at(&pending, over - 1), over);
    assert_false(runner_pending_begin_step(&pending, &other, over - 1));
    assert_true(runner_pending_begin_step(&pending, &slow[0], over));
    assert_true(runner_pending_begin_step(&pending, &other, over));
    assert_false(runner_pending_begin_step(&pending, &slow[0], over));
    assert_true(runner_pending_begin_step(&pending, &slow[0], over + 1));
    assert_false(runner_pending_begin_step(&pending, &slow[1], over + 1));
}

static void with_memory_for_one_node_the_first_run_is_replaced(void **state)
{
    runner_pending_t pending = {.limits_growth = true};
    apr_time_t later = NOW + RUNNER_PENDING_IDLE;
    size_t silent = 0;
    size_t second = 0;
    size_t third = 0;

    set_room(&pending, 2);
    assert_true(runner_pending_begin_step(&pending, &silent, NOW));
    assert_true(runner_pending_begin_step(&pending, &second, NOW));
    set_room(&pending, 1);
    assert_true(runner_pending_begin_step(&pending, &second, later));
    assert_false(runner_pending_begin_step(&pending, &third, later));
    assert_true(runner_pending_end_run(&pending, &second));
    assert_false(runner_pending_end_run(&pending, &silent));
    assert_true(runner_pending_begin_step(&pending, &third, later));
}

static void without_memory_a_silent_run_stays(void **state)
{
    runner_pending_t pending = {.limits_growth = true};
    apr_time_t later = NOW + RUNNER_PENDING_IDLE;
    size_t silent = 0;
    size_t second = 0;

    set_room(&pending, 0);
    assert_true(runner_pending_begin_step(&pending, &silent, NOW));
    assert_false(runner_pending_begin_step(&pending, &second, later));
    assert_int_equal(runner_pending_wake_at(&pending, NOW), AGENT_CLOCK_NEVER);
    assert_true(set_room(&pending, 1));
    assert_true(runner_pending_begin_step(&pending, &second, later));
}

static void while_growth_is_limited_growing_runs_receive_large_texts(
    void **state)
{
    runner_pending_t pending = {.bytes_max = 1, .limits_growth = true};
    apr_time_t later = NOW + RUNNER_PENDING_IDLE;
    size_t growing = 0;
    size_t other = 0;
    size_t small = 0;

    set_room(&pending, 1);
    assert_true(runner_pending_begin_step(&pending, &growing, NOW));
    runner_pending_set(&pending, &other, RUNNER_PENDING_SMALL + 1, NOW);
    runner_pending_set(&pending, &growing, RUNNER_PENDING_SMALL + 1, NOW);
    runner_pending_set(&pending, &small, RUNNER_PENDING_SMALL, NOW);
    assert_false(runner_pending_is_paused(&pending, &growing, NOW));
    assert_true(runner_pending_is_paused(&pending, &other, NOW));
    assert_false(runner_pending_is_paused(&pending, &small, NOW));
    assert_false(runner_pending_is_paused(&pending, &growing, NOW + 1));
    assert_int_equal(runner_pending_wake_at(&pending, NOW), later);
    assert_false(runner_pending_is_paused(&pending, &other, later));
    assert_true(runner_pending_is_paused(&pending, &growing, later));
}

static void limits_follow_the_memory_of_all_runs(void **state)
{
    runner_pending_t pending = {.bytes_max = 1};

    runner_pending_set_memory(&pending, MEMORY - 1, MEMORY);
    assert_false(pending.limits_receiving);
    runner_pending_set_memory(&pending, MEMORY, MEMORY);
    assert_true(pending.limits_receiving);
    runner_pending_set_memory(&pending, MEMORY / 4 * 5 - 1, MEMORY);
    assert_false(pending.limits_growth);
    runner_pending_set_memory(&pending, MEMORY / 4 * 5, MEMORY);
    assert_true(pending.limits_growth);
    assert_true(pending.growing[0].has_room);
    assert_true(pending.growing[1].has_room);
    runner_pending_set_memory(&pending, 13 * RUNNER_PENDING_NODE, MEMORY);
    assert_true(pending.growing[0].has_room);
    assert_false(pending.growing[1].has_room);
    runner_pending_set_memory(&pending, 20 * RUNNER_PENDING_NODE, MEMORY);
    assert_false(pending.growing[0].has_room);
}

static void once_growth_is_not_limited_any_run_may_begin_nodes(void **state)
{
    runner_pending_t pending = {.bytes_max = 1};
    size_t first = 0;
    size_t second = 0;

    set_room(&pending, 0);
    assert_true(runner_pending_begin_step(&pending, &first, NOW));
    assert_false(runner_pending_begin_step(&pending, &second, NOW));
    assert_true(runner_pending_set_memory(&pending, 0, MEMORY));
    assert_true(runner_pending_begin_step(&pending, &second, NOW));
    set_room(&pending, 0);
    assert_true(runner_pending_begin_step(&pending, &second, NOW));
    assert_false(runner_pending_begin_step(&pending, &first, NOW));
}

static void asking_whether_a_node_may_begin_changes_nothing(void **state)
{
    runner_pending_t pending = {.bytes_max = RUNNER_PENDING_SMALL};
    runner_pending_t before;
    size_t runs[3] = {0, 0, 0};

    assert_true(runner_pending_may_step(&pending, &runs[0], NOW));
    for (int nodes = 4; nodes >= 0; nodes--) {
        set_room(&pending, nodes);
        for (int i = 0; i < 12; i++) {
            const size_t *run = &runs[i % 3];
            bool may_step;

            before = pending;
            may_step = runner_pending_may_step(&pending, run, NOW + i);
            assert_memory_equal(&pending, &before, sizeof(pending));
            assert_int_equal(runner_pending_begin_step(&pending, run, NOW + i),
                             may_step);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(below_the_limit_every_run_receives),
        CHECK_TEST(above_the_limit_one_run_receives_until_it_is_done),
        CHECK_TEST(one_run_receives_while_memory_is_short),
        CHECK_TEST(a_receiver_without_progress_is_replaced),
        CHECK_TEST(a_receiver_with_progress_is_not_replaced),
        CHECK_TEST(a_receiver_with_slow_progress_is_replaced_after_its_turn),
        CHECK_TEST(no_receiver_is_replaced_at_twice_the_limit),
        CHECK_TEST(
            while_growth_is_limited_runs_begin_nodes_one_after_the_other),
        CHECK_TEST(a_second_run_begins_nodes_while_there_is_memory_for_two),
        CHECK_TEST(a_growing_run_without_progress_is_replaced),
        CHECK_TEST(a_run_that_grows_slowly_is_replaced_after_its_turn),
        CHECK_TEST(with_memory_for_one_node_the_first_run_is_replaced),
        CHECK_TEST(without_memory_a_silent_run_stays),
        CHECK_TEST(while_growth_is_limited_growing_runs_receive_large_texts),
        CHECK_TEST(limits_follow_the_memory_of_all_runs),
        CHECK_TEST(once_growth_is_not_limited_any_run_may_begin_nodes),
        CHECK_TEST(asking_whether_a_node_may_begin_changes_nothing),
    };

    return CHECK_RUN(tests);
}
