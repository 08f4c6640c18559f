/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/member.c */
/* A host notices that the clock of the store was set. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/protocol/member.h"

static const rlr_member_config_t config = {{1, 2, 3}, "one", 4, 3600000};

typedef struct case_t {
    rlr_member_t member;
    rlr_message_call_t call;
    rlr_message_reply_t reply;
} case_t;

static rlr_message_kind_t send_next(case_t *test, uint64_t now_ms)
{
    bool is_exclusive;
    rlr_message_kind_t kind = rlr_member_next(&test->member, &is_exclusive,
                                              now_ms);

    rlr_member_fill(&test->call, &test->member, &config, kind, now_ms);
    return kind;
}

/* One call, and its reply with that time of the store. */
static bool answer_at(case_t *test, uint64_t store_ms, uint64_t sent_ms,
                      uint64_t received_ms)
{
    send_next(test, sent_ms);
    test->reply.now_ms = store_ms;
    return rlr_member_answer(&test->member, &test->call, &test->reply,
                             test->member.generation, sent_ms, received_ms);
}

/* A member at 1002 ms, which is 5001002 at the store. */
static void join(case_t *test)
{
    memset(test, 0, sizeof(*test));
    rlr_member_init(&test->member);
    memcpy(test->reply.epoch, "0123456789abcdef", RLR_MESSAGE_EPOCH_BYTES);
    test->reply.number = 2;
    assert_false(answer_at(test, 5001001, 1000, 1001));
    assert_true(answer_at(test, 5001002, 1001, 1002));
}

static void a_reply_is_not_used_if_the_clock_of_the_store_was_set(void **state)
{
    static const int64_t by_ms[] = {11000, 100, 8, -8, -100, -3600000};
    case_t test;

    for (size_t i = 0; i < sizeof(by_ms) / sizeof(by_ms[0]); i++) {
        join(&test);
        assert_true(answer_at(&test, 5001501, 1500, 1502));
        assert_false(
            answer_at(&test, (uint64_t)(5002001 + by_ms[i]), 2000, 2002));
        assert_int_equal(send_next(&test, 2002), RLR_MESSAGE_HELLO);
        assert_true((test.call.flags & RLR_MESSAGE_CLOCK) != 0);
        assert_memory_equal(test.call.epoch, "0123456789abcdef",
                            RLR_MESSAGE_EPOCH_BYTES);
        /* Another host has said it before. */
        memcpy(test.reply.epoch, "fedcba9876543210", RLR_MESSAGE_EPOCH_BYTES);
        assert_false(
            answer_at(&test, (uint64_t)(5002003 + by_ms[i]), 2002, 2004));
        assert_int_equal(send_next(&test, 2004), RLR_MESSAGE_REPORT);
        assert_int_equal(test.call.flags & RLR_MESSAGE_CLOCK, 0);
    }
}

static void no_call_renews_the_membership_after_the_clock_was_set(void **state)
{
    case_t test;

    join(&test);
    assert_false(answer_at(&test, 5012001, 2000, 2002));
    for (uint64_t at = 2100; at < 3000; at += 100) {
        assert_false(answer_at(&test, 5010001 + at, at, at + 2));
        assert_int_equal(send_next(&test, at + 2), RLR_MESSAGE_HELLO);
        assert_true((test.call.flags & RLR_MESSAGE_CLOCK) != 0);
    }
}

static void a_clock_with_another_speed_of_less_than_a_512th_was_not_set(
    void **state)
{
    for (int direction = -1; direction <= 1; direction += 2) {
        case_t test;

        join(&test);
        for (int64_t ms = 1500; ms < 400000; ms += 300) {
            int64_t store_ms = 5000000 + ms + direction * (ms - 1000) / 520;

            assert_true(answer_at(&test, (uint64_t)store_ms, (uint64_t)ms - 1,
                                  (uint64_t)ms + 1));
        }
    }
}

/* How long a clock that runs faster by 1/part remains unnoticed, with a reply
 * each gap_ms. */
static uint64_t find_unnoticed(uint64_t gap_ms, int64_t part)
{
    case_t test;
    uint64_t at = 1500;

    join(&test);
    while (at < 60000
           && answer_at(
               &test,
               (uint64_t)(5000000 + (int64_t)at + ((int64_t)at - 1500) / part),
               at - 1, at + 1)) {
        at += gap_ms;
    }
    return at - 1500;
}

static void a_clock_that_is_corrected_too_fast_is_noticed_beside_much_load(
    void **state)
{
    static const uint64_t gaps_ms[] = {1, 5, 20, 100, 300};

    for (size_t i = 0; i < sizeof(gaps_ms) / sizeof(gaps_ms[0]); i++) {
        /* 83 and 5 ms in a second, forward and back. */
        assert_true(find_unnoticed(gaps_ms[i], 12) < 100 + gaps_ms[i]);
        assert_true(find_unnoticed(gaps_ms[i], -12) < 100 + gaps_ms[i]);
        assert_true(find_unnoticed(gaps_ms[i], 200) < 2500 + gaps_ms[i]);
        assert_true(find_unnoticed(gaps_ms[i], -200) < 2500 + gaps_ms[i]);
    }
}

static void replies_that_take_long_do_not_look_like_another_clock(void **state)
{
    case_t test;

    join(&test);
    /* Executed at once, and at the end. */
    for (uint64_t at = 1500; at < 20000; at += 1000) {
        assert_true(answer_at(&test, 5000000 + at, at, at + 480));
        assert_true(answer_at(&test, 5000980 + at, at + 500, at + 980));
    }
    assert_false(answer_at(&test, 5020600, 20500, 20590));
    assert_int_equal(send_next(&test, 20590), RLR_MESSAGE_HELLO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_reply_is_not_used_if_the_clock_of_the_store_was_set),
        CHECK_TEST(no_call_renews_the_membership_after_the_clock_was_set),
        CHECK_TEST(a_clock_with_another_speed_of_less_than_a_512th_was_not_set),
        CHECK_TEST(
            a_clock_that_is_corrected_too_fast_is_noticed_beside_much_load),
        CHECK_TEST(replies_that_take_long_do_not_look_like_another_clock),
    };

    return CHECK_RUN(tests);
}
