/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/backoff.c */
/* The delay before the next attempt. */
#include "check.h"

#include <limits.h>

#include "../../mod_agent/core/backoff.h"

static void the_delay_doubles_with_each_failure(void **state)
{
    assert_int_equal(agent_backoff_delay(0, 100, 5000), 100);
    assert_int_equal(agent_backoff_delay(1, 100, 5000), 200);
    assert_int_equal(agent_backoff_delay(5, 100, 5000), 3200);
}

static void the_delay_has_a_maximum(void **state)
{
    assert_int_equal(agent_backoff_delay(6, 100, 5000), 5000);
    assert_int_equal(agent_backoff_delay(INT_MAX, 100, 5000), 5000);
    assert_int_equal(agent_backoff_delay(0, 100, 50), 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_delay_doubles_with_each_failure),
        CHECK_TEST(the_delay_has_a_maximum)};

    return CHECK_RUN(tests);
}
