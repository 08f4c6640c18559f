/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/quota.c */
/* The texts of a limit in responses. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_ratelimit_regional/rules/quota.h"

static rlr_quota_t make(uint32_t count, uint32_t interval_sec, apr_pool_t *pool)
{
    rlr_limit_t limit = {count, interval_sec};
    rlr_quota_t quota;

    rlr_quota_init(&quota, "run-query", limit, pool);
    return quota;
}

static void d3_27_the_policy_has_count_and_interval(void **state)
{
    rlr_quota_t quota = make(15, 10, *state);

    assert_string_equal(quota.policy, "\"run-query\";q=15;w=10");
    quota = make(1000000, 86400, *state);
    assert_string_equal(quota.policy, "\"run-query\";q=1000000;w=86400");
}

static void d3_27_the_remaining_quota_has_the_time_until_it_grows(void **state)
{
    rlr_quota_t quota = make(15, 10, *state);

    assert_string_equal(rlr_quota_remaining(&quota, 0, 0, *state),
                        "\"run-query\";r=0;t=0");
    assert_string_equal(rlr_quota_remaining(&quota, 14, 10, *state),
                        "\"run-query\";r=14;t=10");
    assert_string_equal(
        rlr_quota_remaining(&quota, UINT32_MAX, UINT32_MAX, *state),
        "\"run-query\";r=4294967295;t=4294967295");
}

/* Checks the detail of the refusal, and the length of the body. */
static void check_detail(uint32_t count, uint32_t interval_sec,
                         uint32_t wait_sec, const char *detail,
                         apr_pool_t *pool)
{
    rlr_quota_t quota = make(count, interval_sec, pool);
    rlr_text_t problem = rlr_quota_problem(&quota, wait_sec, pool);
    const char *begin = strstr(
        apr_pstrmemdup(pool, problem.bytes, problem.length), "\"detail\":\"");

    assert_non_null(begin);
    begin += strlen("\"detail\":\"");
    assert_memory_equal(begin, detail, strlen(detail));
    assert_string_equal(begin + strlen(detail),
                        "\",\"violated-policies\":[\"run-query\"]}\n");
}

static void d3_26_the_body_of_a_refusal_has_the_limit_and_the_wait(void **state)
{
    check_detail(15, 10, 7,
                 "Rate limit exceeded: at most 15 requests in 10 seconds "
                 "(run-query). Try again in 7 seconds.",
                 *state);
    check_detail(1, 1, 1,
                 "Rate limit exceeded: at most 1 request in 1 second "
                 "(run-query). Try again in 1 second.",
                 *state);
    check_detail(30, 3600, UINT32_MAX,
                 "Rate limit exceeded: at most 30 requests in 3600 seconds "
                 "(run-query). Try again in 4294967295 seconds.",
                 *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(d3_27_the_policy_has_count_and_interval),
        CHECK_TEST(d3_27_the_remaining_quota_has_the_time_until_it_grows),
        CHECK_TEST(d3_26_the_body_of_a_refusal_has_the_limit_and_the_wait)};

    return CHECK_RUN(tests);
}
