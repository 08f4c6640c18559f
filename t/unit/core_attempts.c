/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/attempts.c core/lock.c core/child_thread.c */
/* Attempts of an address. */
#include "check.h"

#include <stdbool.h>

#include "../../mod_agent/core/attempts.h"

#define LIMIT 20

static agent_attempts_t *make_table(apr_pool_t *pool)
{
    agent_attempts_t *attempts;

    assert_int_equal(
        agent_attempts_create(&attempts, LIMIT, apr_time_from_sec(10), pool),
        APR_SUCCESS);
    return attempts;
}

static void fail_often(agent_attempts_t *attempts, apr_uint64_t address,
                       int count, apr_time_t now)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(agent_attempts_wait(attempts, address, now), 0);
        agent_attempts_add(attempts, address, now);
    }
}

static void after_its_attempts_an_address_waits_for_the_rest_of_the_time(
    void **state)
{
    agent_attempts_t *attempts = make_table(*state);
    apr_time_t now = apr_time_from_sec(1000);

    fail_often(attempts, 1, 1, now);
    now += apr_time_from_sec(4);
    fail_often(attempts, 1, LIMIT - 1, now);
    assert_int_equal(agent_attempts_wait(attempts, 1, now),
                     apr_time_from_sec(6));
    assert_int_equal(agent_attempts_wait(attempts, 2, now), 0);
    now += apr_time_from_sec(6);
    assert_int_equal(agent_attempts_wait(attempts, 1, now), 0);
    fail_often(attempts, 1, LIMIT, now);
    assert_true(agent_attempts_wait(attempts, 1, now) > 0);
}

static void an_address_with_many_attempts_is_kept_beside_many_others(
    void **state)
{
    agent_attempts_t *attempts = make_table(*state);
    apr_time_t now = apr_time_from_sec(1000);

    fail_often(attempts, 7, LIMIT, now);
    for (apr_uint64_t address = 100; address < 100000; address++) {
        agent_attempts_add(attempts, address << 20, now);
    }
    assert_true(agent_attempts_wait(attempts, 7, now) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(
            after_its_attempts_an_address_waits_for_the_rest_of_the_time),
        CHECK_TEST(an_address_with_many_attempts_is_kept_beside_many_others)};

    return CHECK_RUN(tests);
}
