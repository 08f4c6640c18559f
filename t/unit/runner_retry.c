/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/model/retry.c */
/* When a model call is retried. */
#include "check.h"

#include "runners/builtin/model/retry.h"

/* Sun, 06 Nov 1994 08:49:37 GMT */
#define MOMENT apr_time_from_sec(784111777)

static void retry_after_is_read_as_seconds(void **state)
{
    assert_int_equal(runner_retry_after("0", MOMENT), 0);
    assert_int_equal(runner_retry_after("7", MOMENT), apr_time_from_sec(7));
    assert_int_equal(runner_retry_after(" 7 ", MOMENT), apr_time_from_sec(7));
    assert_int_equal(runner_retry_after("1.5", MOMENT),
                     apr_time_from_msec(1500));
    assert_int_equal(runner_retry_after("99999999999999999999", MOMENT),
                     apr_time_from_sec(31536000));
}

static void retry_after_is_read_as_a_date(void **state)
{
    assert_int_equal(
        runner_retry_after("Sun, 06 Nov 1994 08:49:47 GMT", MOMENT),
        apr_time_from_sec(10));
    assert_int_equal(
        runner_retry_after("Sunday, 06-Nov-94 08:49:47 GMT", MOMENT),
        apr_time_from_sec(10));
    assert_int_equal(runner_retry_after("Sun Nov  6 08:49:47 1994", MOMENT),
                     apr_time_from_sec(10));
}

static void a_past_date_means_no_delay(void **state)
{
    assert_int_equal(
        runner_retry_after("Sun, 06 Nov 1994 08:49:36 GMT", MOMENT), 0);
}

static void a_malformed_retry_after_is_ignored(void **state)
{
    static const char *const bad[] = {
        "", " ", "soon", "-1", "7 apples", "nan", "Sun, 99 Nov 1994"};

    assert_int_equal(runner_retry_after(NULL, MOMENT), -1);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(runner_retry_after(bad[i], MOMENT), -1);
    }
}

static void the_delay_is_that_of_the_server(void **state)
{
    assert_int_equal(runner_retry_delay(1, 0, 1023), 0);
    assert_int_equal(runner_retry_delay(3, apr_time_from_sec(100), 1023),
                     apr_time_from_sec(100));
}

static void the_delay_doubles_up_to_eight_seconds(void **state)
{
    static const int expected_ms[] = {500, 1000, 2000, 4000, 8000, 8000};

    for (int i = 0; i < 6; i++) {
        assert_int_equal(runner_retry_delay(i + 1, -1, 0),
                         apr_time_from_msec(expected_ms[i]));
    }
    assert_int_equal(runner_retry_delay(1000000, -1, 0), apr_time_from_sec(8));
}

static void the_delay_is_shortened_by_up_to_a_quarter(void **state)
{
    for (unsigned random = 0; random < 5000; random += 7) {
        apr_interval_time_t delay = runner_retry_delay(2, -1, random);

        assert_in_range(delay, apr_time_from_msec(750),
                        apr_time_from_msec(1000));
    }
    assert_int_not_equal(runner_retry_delay(2, -1, 1023),
                         runner_retry_delay(2, -1, 0));
}

static void only_some_statuses_are_retried(void **state)
{
    static const int worth[] = {429, 500, 502, 503, 529};
    int count = 0;

    for (size_t i = 0; i < sizeof(worth) / sizeof(worth[0]); i++) {
        assert_true(runner_retry_is_worth(worth[i]));
    }
    for (int status = 0; status < 600; status++) {
        count += runner_retry_is_worth(status) ? 1 : 0;
    }
    assert_int_equal(count, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(retry_after_is_read_as_seconds),
        CHECK_TEST(retry_after_is_read_as_a_date),
        CHECK_TEST(a_past_date_means_no_delay),
        CHECK_TEST(a_malformed_retry_after_is_ignored),
        CHECK_TEST(the_delay_is_that_of_the_server),
        CHECK_TEST(the_delay_doubles_up_to_eight_seconds),
        CHECK_TEST(the_delay_is_shortened_by_up_to_a_quarter),
        CHECK_TEST(only_some_statuses_are_retried),
    };

    return CHECK_RUN(tests);
}
