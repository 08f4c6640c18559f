/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: supervisor/base/adaptive_limit.c */
/* How many rows a statement may ask for; see supervisor/base/adaptive_limit.h.
 */
#include "check.h"

#include "../../mod_agent/supervisor/base/adaptive_limit.h"

static void the_first_statement_asks_for_the_maximum(void **state)
{
    agent_adaptive_limit_t limit;

    agent_adaptive_limit_init(&limit, 50);
    assert_int_equal(limit.current, 50);
    agent_adaptive_limit_raise(&limit);
    assert_int_equal(limit.current, 50);
}

static void a_failure_halves_the_limit_down_to_one(void **state)
{
    static const int expected[] = {25, 12, 6, 3, 1, 1, 1};
    agent_adaptive_limit_t limit;

    agent_adaptive_limit_init(&limit, 50);
    for (int i = 0; i < 7; i++) {
        agent_adaptive_limit_lower(&limit, limit.current);
        assert_int_equal(limit.current, expected[i]);
    }
}

static void the_limit_is_half_of_the_rows_that_failed(void **state)
{
    agent_adaptive_limit_t limit;

    agent_adaptive_limit_init(&limit, 200);
    agent_adaptive_limit_lower(&limit, 8);
    assert_int_equal(limit.current, 4);
    agent_adaptive_limit_lower(&limit, 0);
    assert_int_equal(limit.current, 1);
}

static void a_success_doubles_the_limit_up_to_the_maximum(void **state)
{
    static const int expected[] = {2, 4, 8, 16, 32, 64, 100, 100};
    agent_adaptive_limit_t limit;

    agent_adaptive_limit_init(&limit, 100);
    agent_adaptive_limit_lower(&limit, 1);
    for (int i = 0; i < 8; i++) {
        agent_adaptive_limit_raise(&limit);
        assert_int_equal(limit.current, expected[i]);
    }
}

static void a_maximum_of_one_row_never_changes(void **state)
{
    agent_adaptive_limit_t limit;

    agent_adaptive_limit_init(&limit, 1);
    agent_adaptive_limit_raise(&limit);
    assert_int_equal(limit.current, 1);
    agent_adaptive_limit_lower(&limit, 1);
    assert_int_equal(limit.current, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_first_statement_asks_for_the_maximum),
        CHECK_TEST(a_failure_halves_the_limit_down_to_one),
        CHECK_TEST(the_limit_is_half_of_the_rows_that_failed),
        CHECK_TEST(a_success_doubles_the_limit_up_to_the_maximum),
        CHECK_TEST(a_maximum_of_one_row_never_changes),
    };

    return CHECK_RUN(tests);
}
