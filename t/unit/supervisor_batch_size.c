/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/lease/batch_size.c */
/* How much output one statement saves; see supervisor/lease/batch_size.h. */
#include "check.h"

#include "../../mod_agent/supervisor/lease/batch_size.h"

#define NOW apr_time_from_sec(1000)
#define KB  ((apr_size_t)1024)

static void output_that_was_not_measured_begins_with_128_KB(void **state)
{
    agent_batch_size_t size = {0};

    assert_int_equal(agent_batch_size_limit(&size), 128 * KB);
}

static void a_slow_statement_limits_the_next_one_to_250_ms(void **state)
{
    agent_batch_size_t size = {0};

    agent_batch_size_save(&size, 400 * KB, apr_time_from_msec(1000));
    assert_int_equal(agent_batch_size_limit(&size), 100 * KB);
    agent_batch_size_save(&size, 100 * KB, apr_time_from_msec(200));
    assert_int_equal(agent_batch_size_limit(&size), 125 * KB);
}

static void quick_statements_double_the_limit_up_to_8_MB(void **state)
{
    agent_batch_size_t size = {0};

    for (int i = 1; i <= 6; i++) {
        agent_batch_size_save(&size, agent_batch_size_limit(&size), 1000);
        assert_int_equal(agent_batch_size_limit(&size), (128 * KB) << i);
    }
    agent_batch_size_save(&size, agent_batch_size_limit(&size), 0);
    assert_int_equal(agent_batch_size_limit(&size), AGENT_BATCH_SIZE_MAX);
}

static void a_slow_commit_leaves_a_limit_of_64_KB(void **state)
{
    agent_batch_size_t size = {0};

    agent_batch_size_save(&size, agent_batch_size_cost(1, 100),
                          apr_time_from_sec(3));
    assert_int_equal(agent_batch_size_limit(&size), 64 * KB);
}

static void a_failure_halves_the_cost_at_least_down_to_one_line(void **state)
{
    agent_batch_size_t size = {0};

    agent_batch_size_fail(&size, 100 * KB, 1000);
    assert_int_equal(agent_batch_size_limit(&size), 50 * KB);
    agent_batch_size_fail(&size, 100 * KB, apr_time_from_sec(10));
    assert_int_equal(agent_batch_size_limit(&size), 100 * KB / 40);
    agent_batch_size_fail(&size, 1, apr_time_from_sec(10));
    assert_int_equal(agent_batch_size_limit(&size), 1);
}

static void a_limit_after_a_failure_grows_by_a_quarter(void **state)
{
    agent_batch_size_t size = {0};

    agent_batch_size_fail(&size, 80 * KB, apr_time_from_sec(1));
    assert_int_equal(agent_batch_size_limit(&size), 20 * KB);
    agent_batch_size_save(&size, 20 * KB, apr_time_from_sec(1));
    assert_int_equal(agent_batch_size_limit(&size), 25 * KB + 1);
    agent_batch_size_save(&size, 20 * KB, 1000);
    assert_int_equal(agent_batch_size_limit(&size), 50 * KB + 2);
}

static void a_run_is_slow_when_its_part_of_a_slow_batch_is_large(void **state)
{
    apr_interval_time_t slow = apr_time_from_msec(400);

    assert_true(agent_batch_size_is_slow(50, 100, slow));
    assert_false(agent_batch_size_is_slow(1, 100, slow));
    assert_false(agent_batch_size_is_slow(50, 100, apr_time_from_msec(150)));
}

static void a_slow_run_has_dedicated_batches_for_5_s(void **state)
{
    agent_batch_size_t size = {0};

    assert_false(agent_batch_size_is_dedicated(&size, NOW));
    agent_batch_size_dedicate(&size, NOW);
    assert_true(
        agent_batch_size_is_dedicated(&size, NOW + apr_time_from_sec(5) - 1));
    assert_false(
        agent_batch_size_is_dedicated(&size, NOW + apr_time_from_sec(5)));
}

static void a_run_has_them_longer_until_its_output_is_much_cheaper(void **state)
{
    apr_time_t later = NOW + apr_time_from_sec(4);
    agent_batch_size_t size = {0};

    agent_batch_size_dedicate(&size, NOW);
    agent_batch_size_extend(&size, 64 * KB, apr_time_from_msec(10), later);
    agent_batch_size_extend(&size, 2048 * KB, apr_time_from_msec(200), later);
    assert_int_equal(size.dedicated_until, NOW + apr_time_from_sec(5));
    /* The time that made it slow is not needed. */
    agent_batch_size_extend(&size, 64 * KB, apr_time_from_msec(100), later);
    assert_int_equal(size.dedicated_until, later + apr_time_from_sec(5));
}

static void a_run_that_shares_batches_is_not_moved_by_one_slow_batch_of_its_own(
    void **state)
{
    agent_batch_size_t size = {0};

    agent_batch_size_extend(&size, 64 * KB, apr_time_from_sec(1), NOW);
    assert_false(agent_batch_size_is_dedicated(&size, NOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(output_that_was_not_measured_begins_with_128_KB),
        CHECK_TEST(a_slow_statement_limits_the_next_one_to_250_ms),
        CHECK_TEST(quick_statements_double_the_limit_up_to_8_MB),
        CHECK_TEST(a_slow_commit_leaves_a_limit_of_64_KB),
        CHECK_TEST(a_failure_halves_the_cost_at_least_down_to_one_line),
        CHECK_TEST(a_limit_after_a_failure_grows_by_a_quarter),
        CHECK_TEST(a_run_is_slow_when_its_part_of_a_slow_batch_is_large),
        CHECK_TEST(a_slow_run_has_dedicated_batches_for_5_s),
        CHECK_TEST(a_run_has_them_longer_until_its_output_is_much_cheaper),
        CHECK_TEST(
            a_run_that_shares_batches_is_not_moved_by_one_slow_batch_of_its_own),
    };

    return CHECK_RUN(tests);
}
