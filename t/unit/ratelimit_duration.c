/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/duration.c */
/* Durations with units. */
#include "check.h"

#include "../../mod_ratelimit_regional/rules/duration.h"

static void check_ms(const char *text, uint64_t expected)
{
    uint64_t ms = 0;

    assert_true(rlr_duration_parse(&ms, text));
    assert_int_equal(ms, expected);
}

static void a_bare_number_is_in_seconds(void **state)
{
    check_ms("10", 10000);
    check_ms("0", 0);
    check_ms("007", 7000);
}

static void units_are_milliseconds_to_days(void **state)
{
    check_ms("500ms", 500);
    check_ms("10s", 10000);
    check_ms("1m", 60000);
    check_ms("1mi", 60000);
    check_ms("1min", 60000);
    check_ms("1h", 3600000);
    check_ms("2d", 172800000);
}

static void units_are_case_insensitive(void **state)
{
    check_ms("10S", 10000);
    check_ms("5MS", 5);
    check_ms("1MIN", 60000);
}

static void a_text_that_is_not_a_duration_is_refused(void **state)
{
    static const char *const bad[] = {"",    "s",   "-1",  "+1",   " 1",
                                      "1 s", "1x",  "1ss", "1.5s", "1s1",
                                      "ms",  "0x1", "1us", "1 ",   "1mins"};
    uint64_t ms;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(rlr_duration_parse(&ms, bad[i]));
    }
}

static void a_number_of_more_than_eleven_digits_is_refused(void **state)
{
    uint64_t ms;

    check_ms("99999999999d", 99999999999ULL * 86400000);
    assert_false(rlr_duration_parse(&ms, "999999999999d"));
    assert_false(rlr_duration_parse(&ms, "18446744073709551617"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_bare_number_is_in_seconds),
        CHECK_TEST(units_are_milliseconds_to_days),
        CHECK_TEST(units_are_case_insensitive),
        CHECK_TEST(a_text_that_is_not_a_duration_is_refused),
        CHECK_TEST(a_number_of_more_than_eleven_digits_is_refused)};

    return CHECK_RUN(tests);
}
