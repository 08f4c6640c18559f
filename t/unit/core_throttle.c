/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/throttle.c */
/* Which of many equal log lines are written. */
#include "check.h"

#include "../../mod_agent/core/throttle.h"

#define START apr_time_from_sec(7)

static void the_first_line_is_written_at_any_time(void **state)
{
    agent_throttle_t throttle = {0};
    unsigned suppressed = 7;

    assert_true(agent_throttle_pass(&throttle, START, &suppressed));
    assert_int_equal(suppressed, 0);
}

static void lines_within_a_minute_are_suppressed_and_counted(void **state)
{
    agent_throttle_t throttle = {0};
    unsigned suppressed = 7;

    assert_true(agent_throttle_pass(&throttle, START, NULL));
    assert_false(agent_throttle_pass(&throttle, START, &suppressed));
    assert_false(agent_throttle_pass(
        &throttle, START + apr_time_from_sec(60) - 1, &suppressed));
    assert_int_equal(suppressed, 7);
    assert_true(agent_throttle_pass(&throttle, START + apr_time_from_sec(60),
                                    &suppressed));
    assert_int_equal(suppressed, 2);
}

static void the_count_starts_again_after_each_line(void **state)
{
    agent_throttle_t throttle = {0};
    unsigned suppressed;

    assert_true(agent_throttle_pass(&throttle, START, NULL));
    assert_false(agent_throttle_pass(&throttle, START, NULL));
    assert_true(
        agent_throttle_pass(&throttle, START + apr_time_from_sec(60), NULL));
    assert_true(agent_throttle_pass(&throttle, START + apr_time_from_sec(120),
                                    &suppressed));
    assert_int_equal(suppressed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_first_line_is_written_at_any_time),
        CHECK_TEST(lines_within_a_minute_are_suppressed_and_counted),
        CHECK_TEST(the_count_starts_again_after_each_line)};

    return CHECK_RUN(tests);
}
