/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: auth/failures.c */
/* Refused keys of an address. */
#include "check.h"

#include <stdbool.h>

#include "../../mod_agent/auth/failures.h"

static agent_failures_t *make_table(apr_pool_t *pool)
{
    agent_failures_t *failures;

    assert_int_equal(agent_failures_create(&failures, pool), APR_SUCCESS);
    return failures;
}

static void fail_often(agent_failures_t *failures, apr_uint64_t address,
                       int count, apr_time_t now)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(agent_failures_wait(failures, address, now), 0);
        agent_failures_add(failures, address, now);
    }
}

static void after_its_failures_an_address_waits_for_the_rest_of_the_time(
    void **state)
{
    agent_failures_t *failures = make_table(*state);
    apr_time_t now = apr_time_from_sec(1000);

    fail_often(failures, 1, 1, now);
    now += apr_time_from_sec(4);
    fail_often(failures, 1, AGENT_FAILURE_LIMIT - 1, now);
    assert_int_equal(agent_failures_wait(failures, 1, now),
                     apr_time_from_sec(6));
    assert_int_equal(agent_failures_wait(failures, 2, now), 0);
    now += apr_time_from_sec(6);
    assert_int_equal(agent_failures_wait(failures, 1, now), 0);
    fail_often(failures, 1, AGENT_FAILURE_LIMIT, now);
    assert_true(agent_failures_wait(failures, 1, now) > 0);
}

static void an_address_with_many_failures_is_kept_beside_many_others(
    void **state)
{
    agent_failures_t *failures = make_table(*state);
    apr_time_t now = apr_time_from_sec(1000);

    fail_often(failures, 7, AGENT_FAILURE_LIMIT, now);
    for (apr_uint64_t address = 100; address < 100000; address++) {
        agent_failures_add(failures, address << 20, now);
    }
    assert_true(agent_failures_wait(failures, 7, now) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(
            after_its_failures_an_address_waits_for_the_rest_of_the_time),
        CHECK_TEST(an_address_with_many_failures_is_kept_beside_many_others)};

    return CHECK_RUN(tests);
}
