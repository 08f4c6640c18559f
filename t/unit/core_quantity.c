/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/quantity.c */
/* Durations and sizes as texts. */
#include "check.h"

#include "../../mod_agent/core/quantity.h"

#define HOUR_SEC 3600

static apr_interval_time_t read_duration(const char *text, const char *unit)
{
    apr_interval_time_t duration = -1;

    return agent_quantity_read_duration(&duration, text, unit) ? duration : -1;
}

static apr_int64_t read_size(const char *text)
{
    apr_int64_t bytes = -1;

    return agent_quantity_read_size(&bytes, text) ? bytes : -1;
}

static void a_duration_has_one_of_five_units(void **state)
{
    assert_int_equal(read_duration("500ms", NULL), 500 * 1000);
    assert_int_equal(read_duration("90s", NULL), apr_time_from_sec(90));
    assert_int_equal(read_duration("30min", NULL), apr_time_from_sec(1800));
    assert_int_equal(read_duration("12h", NULL),
                     apr_time_from_sec(12 * HOUR_SEC));
    assert_int_equal(read_duration("3650d", NULL),
                     apr_time_from_sec(3650LL * 24 * HOUR_SEC));
    assert_int_equal(read_duration("0s", NULL), 0);
}

static void a_number_alone_has_the_unit_of_the_caller(void **state)
{
    assert_int_equal(read_duration("5", "ms"), 5000);
    assert_int_equal(read_duration("5", "d"), read_duration("120h", NULL));
    assert_int_equal(read_duration("5s", "d"), apr_time_from_sec(5));
    assert_int_equal(read_duration("5", NULL), -1);
}

static void a_text_that_is_not_a_duration_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "d",
                                        "-1d",
                                        "+1d",
                                        "1.5h",
                                        "1 d",
                                        " 1d",
                                        "1d ",
                                        "1d\n",
                                        "1D",
                                        "1m",
                                        "1hh",
                                        "1s1",
                                        "0x1s",
                                        "999999999999999999d",
                                        "9999999999999999999999999999999999s"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(read_duration(texts[i], "s"), -1);
    }
}

static void a_duration_is_printed_in_its_largest_whole_unit(void **state)
{
    static const char *const texts[] = {"1d",   "36h", "90min",
                                        "100s", "5ms", "1500ms"};
    apr_pool_t *pool = *state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_string_equal(
            agent_quantity_print_duration(read_duration(texts[i], NULL), pool),
            texts[i]);
    }
    assert_string_equal(
        agent_quantity_print_duration(apr_time_from_sec(86400), pool), "1d");
    assert_string_equal(agent_quantity_print_duration(0, pool), "0");
    assert_string_equal(agent_quantity_print_duration(1, pool), "0ms");
}

static void a_size_is_a_number_of_bytes_or_has_a_unit(void **state)
{
    assert_int_equal(read_size("0"), 0);
    assert_int_equal(read_size("65536"), 65536);
    assert_int_equal(read_size("1K"), 1024);
    assert_int_equal(read_size("64M"), 64 << 20);
    assert_int_equal(read_size("1g"), 1 << 30);
    assert_int_equal(read_size("1024G"), APR_INT64_C(1) << 40);
}

static void a_text_that_is_not_a_size_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "G",
                                        "-1",
                                        "1.5G",
                                        "1 G",
                                        "1T",
                                        "1GB",
                                        "1Gx",
                                        "x",
                                        "9999999999999G",
                                        "99999999999999999999"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(read_size(texts[i]), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_duration_has_one_of_five_units),
        CHECK_TEST(a_number_alone_has_the_unit_of_the_caller),
        CHECK_TEST(a_text_that_is_not_a_duration_is_refused),
        CHECK_TEST(a_duration_is_printed_in_its_largest_whole_unit),
        CHECK_TEST(a_size_is_a_number_of_bytes_or_has_a_unit),
        CHECK_TEST(a_text_that_is_not_a_size_is_refused)};

    return CHECK_RUN(tests);
}
