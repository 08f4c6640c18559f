/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/warm.c core/ */
/* States of recent threads, and their bounds. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "runners/builtin/run/warm.h"

#define GRAPH  ((const runner_graph_t *)"graph")
#define OTHER  ((const runner_graph_t *)"other")
#define ID(n)  "01890000-0000-7000-8000-00000000000" #n
#define WEIGHT 10000

/* A run of a thread that has ended at a checkpoint. */
static runner_run_t *make_run(const char *thread, const char *checkpoint,
                              apr_pool_t *pool)
{
    runner_run_t *run = apr_pcalloc(pool, sizeof(*run));

    run->pool = pool;
    run->graph = GRAPH;
    run->is_at_checkpoint = true;
    run->weight = WEIGHT;
    run->tree_weight = 2 * WEIGHT;
    run->state_size = 100;
    apr_cpystrn(run->thread_id, thread, sizeof(run->thread_id));
    apr_cpystrn(run->checkpoint_id, checkpoint, sizeof(run->checkpoint_id));
    run->values = agent_json_own(json_object_new_object(), pool);
    return run;
}

static void keep(runner_warm_t *warm, const char *thread,
                 const char *checkpoint, apr_time_t now, apr_pool_t *pool)
{
    runner_warm_keep(warm, make_run(thread, checkpoint, pool), now);
}

static bool take(runner_warm_t *warm, const char *thread,
                 const char *checkpoint, apr_pool_t *pool)
{
    return runner_warm_take(warm, make_run(thread, "", pool), checkpoint);
}

static void the_next_run_of_a_thread_gets_the_state(void **state)
{
    runner_warm_t *warm = runner_warm_make(*state);
    runner_run_t *first = make_run(ID(1), ID(a), *state);
    runner_run_t *next = make_run(ID(1), "", *state);

    next->tree_weight = 0;
    runner_warm_keep(warm, first, 0);
    assert_true(warm->bytes > WEIGHT);
    assert_true(runner_warm_take(warm, next, ID(a)));
    assert_ptr_equal(next->values, first->values);
    assert_int_equal(next->state_weight, WEIGHT);
    assert_int_equal(next->tree_weight, 2 * WEIGHT);
    assert_int_equal(warm->bytes, 0);
    assert_false(runner_warm_take(warm, next, ID(a)));
}

static void another_checkpoint_thread_or_graph_does_not(void **state)
{
    runner_warm_t *warm = runner_warm_make(*state);
    runner_run_t *run = make_run(ID(1), "", *state);

    keep(warm, ID(1), ID(a), 0, *state);
    assert_false(take(warm, ID(2), ID(a), *state));
    assert_true(warm->bytes > 0);
    run->graph = OTHER;
    assert_false(runner_warm_take(warm, run, ID(a)));
    assert_int_equal(warm->bytes, 0);
    keep(warm, ID(1), ID(a), 0, *state);
    assert_false(take(warm, ID(1), ID(b), *state));
    /* An older state of the thread is of no use. */
    assert_int_equal(warm->bytes, 0);
}

static void a_thread_has_one_state(void **state)
{
    runner_warm_t *warm = runner_warm_make(*state);
    size_t bytes;

    keep(warm, ID(1), ID(a), 0, *state);
    bytes = warm->bytes;
    keep(warm, ID(1), ID(b), 0, *state);
    assert_int_equal(warm->bytes, bytes);
    assert_true(take(warm, ID(1), ID(b), *state));
}

static void a_state_without_a_checkpoint_is_not_kept(void **state)
{
    runner_warm_t *warm = runner_warm_make(*state);
    runner_run_t *run = make_run(ID(1), ID(a), *state);

    run->is_at_checkpoint = false;
    runner_warm_keep(warm, run, 0);
    run->is_at_checkpoint = true;
    run->is_too_large = true;
    runner_warm_keep(warm, run, 0);
    assert_int_equal(warm->bytes, 0);
    assert_false(take(warm, ID(1), ID(a), *state));
}

static void the_one_used_longest_ago_is_dropped_first(void **state)
{
    runner_warm_t *warm = runner_warm_make(*state);
    size_t one;

    keep(warm, ID(1), ID(a), 0, *state);
    one = warm->bytes;
    keep(warm, ID(2), ID(a), 0, *state);
    keep(warm, ID(3), ID(a), 0, *state);
    assert_true(take(warm, ID(1), ID(a), *state));
    keep(warm, ID(1), ID(b), 0, *state);
    assert_int_equal(runner_warm_trim(warm, 3 * one, 0), 0);
    assert_int_equal(runner_warm_trim(warm, 2 * one, 0), one);
    assert_false(take(warm, ID(2), ID(a), *state));
    assert_true(take(warm, ID(1), ID(b), *state));
    assert_int_equal(runner_warm_trim(warm, 0, 0), one);
    assert_int_equal(warm->bytes, 0);
}

static void a_state_is_kept_for_ten_minutes(void **state)
{
    runner_warm_t *warm = runner_warm_make(*state);

    keep(warm, ID(1), ID(a), 1, *state);
    keep(warm, ID(2), ID(a), 2, *state);
    assert_int_equal(runner_warm_trim(warm, SIZE_MAX, RUNNER_WARM_TIME), 0);
    assert_true(runner_warm_trim(warm, SIZE_MAX, RUNNER_WARM_TIME + 1) > 0);
    assert_false(take(warm, ID(1), ID(a), *state));
    assert_true(take(warm, ID(2), ID(a), *state));
}

static void memory_of_entries_is_used_again(void **state)
{
    runner_warm_t *warm = runner_warm_make(*state);
    apr_pool_t *pool;

    apr_pool_create(&pool, *state);
    for (int i = 0; i < 100000; i++) {
        keep(warm, ID(1), ID(a), 0, pool);
        keep(warm, ID(2), ID(a), 0, pool);
        assert_true(take(warm, ID(1), ID(a), pool));
        runner_warm_trim(warm, 0, 0);
        apr_pool_clear(pool);
    }
    assert_int_equal(warm->bytes, 0);
    assert_int_equal(apr_hash_count(warm->by_thread), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_next_run_of_a_thread_gets_the_state),
        CHECK_TEST(another_checkpoint_thread_or_graph_does_not),
        CHECK_TEST(a_thread_has_one_state),
        CHECK_TEST(a_state_without_a_checkpoint_is_not_kept),
        CHECK_TEST(the_one_used_longest_ago_is_dropped_first),
        CHECK_TEST(a_state_is_kept_for_ten_minutes),
        CHECK_TEST(memory_of_entries_is_used_again),
    };

    return CHECK_RUN(tests);
}
