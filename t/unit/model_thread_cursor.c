/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: model/thread_cursor.c */
/* Event ids of a thread's stream: each cursor has exactly one spelling. */
#include "check.h"

#include "../../mod_agent/model/thread_cursor.h"

static void check_good(const char *text, apr_int64_t run, apr_int64_t seq)
{
    agent_thread_cursor_t cursor = {-7, -7};

    assert_true(agent_thread_cursor_read(&cursor, text));
    assert_int_equal(cursor.run, run);
    assert_int_equal(cursor.seq, seq);
}

static void an_id_is_two_numbers(void **state)
{
    check_good("1-0", 1, 0);
    check_good("12-345", 12, 345);
    check_good("999999999999999999-999999999999999999",
               APR_INT64_C(999999999999999999),
               APR_INT64_C(999999999999999999));
}

static void a_seq_of_minus_one_is_the_start_of_a_run(void **state)
{
    check_good("4--1", 4, -1);
}

static void a_hyphen_is_the_oldest_event(void **state)
{
    check_good("-", 0, -1);
    check_good("0--1", 0, -1);
}

static void any_other_text_is_refused_and_leaves_the_cursor(void **state)
{
    static const char *const bad[] = {"",
                                      "1",
                                      "1-",
                                      "-1",
                                      "--1",
                                      "1-x",
                                      "x-1",
                                      "1-1x",
                                      " 1-1",
                                      "1- 1",
                                      "+1-1",
                                      "1-+1",
                                      "1--2",
                                      "1--1x",
                                      "1-1-1",
                                      "--",
                                      "0x1-1",
                                      "1.0-1",
                                      "-1-1",
                                      "1e3-1",
                                      "9999999999999999999-1",
                                      "1-9999999999999999999"};
    agent_thread_cursor_t cursor = {3, 4};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(agent_thread_cursor_read(&cursor, bad[i]));
    }
    assert_int_equal(cursor.run, 3);
    assert_int_equal(cursor.seq, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(an_id_is_two_numbers),
        CHECK_TEST(a_seq_of_minus_one_is_the_start_of_a_run),
        CHECK_TEST(a_hyphen_is_the_oldest_event),
        CHECK_TEST(any_other_text_is_refused_and_leaves_the_cursor)};

    return CHECK_RUN(tests);
}
