/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/member.c */
/* A host's membership of a partition of the store. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/protocol/member.h"
#include "../../mod_ratelimit_regional/protocol/period.h"

static const unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0};
static const rlr_limit_t ten = {10, 10};
static const rlr_member_config_t config = {{1, 2, 3}, "one", 4, 3600000};

typedef struct case_t {
    rlr_member_t member;
    rlr_message_call_t call;
    rlr_message_reply_t reply;
} case_t;

static void begin(case_t *test)
{
    memset(test, 0, sizeof(*test));
    rlr_member_init(&test->member);
    memcpy(test->reply.epoch, "0123456789abcdef", RLR_MESSAGE_EPOCH_BYTES);
}

/* Sends the next call; its kind. */
static rlr_message_kind_t send_next(case_t *test, uint64_t now_ms)
{
    bool is_exclusive;
    rlr_message_kind_t kind = rlr_member_next(&test->member, &is_exclusive,
                                              now_ms);

    rlr_member_fill(&test->call, &test->member, &config, kind, now_ms);
    return kind;
}

/* Takes the reply to the call that was sent at sent_ms. */
static bool answer(case_t *test, uint64_t sent_ms, uint64_t received_ms)
{
    test->reply.now_ms = 5000000 + received_ms;
    return rlr_member_answer(&test->member, &test->call, &test->reply,
                             test->member.generation, sent_ms, received_ms);
}

/* A member with number 2 at 1000 ms. */
static void join(case_t *test)
{
    begin(test);
    assert_int_equal(send_next(test, 1000), RLR_MESSAGE_HELLO);
    assert_false(answer(test, 1000, 1001));
    assert_int_equal(send_next(test, 1001), RLR_MESSAGE_HEARTBEAT);
    assert_int_equal(test->call.flags, RLR_MESSAGE_NEW);
    test->reply.number = 2;
    test->reply.base_offset_ms = -10000000;
    test->reply.joined_offset_ms = -500;
    assert_true(answer(test, 1001, 1002));
}

static void change_epoch(case_t *test, uint64_t now_ms)
{
    memcpy(test->reply.epoch, "fedcba9876543210", RLR_MESSAGE_EPOCH_BYTES);
    send_next(test, now_ms);
    assert_false(answer(test, now_ms, now_ms));
}

static uint32_t local(const case_t *test, uint64_t now_ms)
{
    return rlr_member_usable_share(&test->member, &config, key, ten, now_ms);
}

static void a_host_says_hello_before_its_first_heartbeat(void **state)
{
    case_t test;

    join(&test);
    send_next(&test, 1500);
    assert_int_equal(test.call.flags, RLR_MESSAGE_STAYED | RLR_MESSAGE_BRING);
    assert_int_equal(test.call.number, 2);
}

static void a_heartbeat_is_void_half_a_second_after_it_was_sent(void **state)
{
    case_t test;

    join(&test);
    send_next(&test, 1500);
    /* The store read 5001002 before 1002, and may have been slower since. */
    assert_int_equal(test.call.latest_ms, 5001002 + 498 - 2 + 500);
}

static void a_host_without_replies_sends_no_heartbeat(void **state)
{
    case_t test;

    join(&test);
    assert_int_equal(send_next(&test, 3000), RLR_MESSAGE_HEARTBEAT);
    assert_int_equal(send_next(&test, 3001), RLR_MESSAGE_HELLO);
}

static void late_replies_and_those_of_an_earlier_epoch_are_not_used(
    void **state)
{
    case_t test;

    join(&test);
    send_next(&test, 1500);
    assert_false(answer(&test, 1500, 2001));
    change_epoch(&test, 2100);
    assert_false(rlr_member_answer(&test.member, &test.call, &test.reply, 0,
                                   2100, 2101));
}

static void a_host_that_is_cut_off_admits_its_share_after_a_while(void **state)
{
    case_t test;
    uint64_t cut_off_ms = 1001 + rlr_period_cut_off(ten.interval_sec);

    join(&test);
    assert_int_equal(local(&test, cut_off_ms - 1), 0);
    /* 10 = 3 + 3 + 2 + 2. */
    assert_int_equal(local(&test, cut_off_ms), 2);
    assert_int_equal(local(&test, 3500000), 2);
    assert_int_equal(local(&test, 1001 + 3600000), 0);
}

/* When a host with that S, which is cut off after 1001 ms, admits its share of
 * a limit with that T: the milliseconds from the first to the last time, in
 * steps of a second; 0: never. */
static uint64_t find_share_time(uint32_t interval_sec, uint64_t share_ms)
{
    rlr_member_config_t other = config;
    rlr_limit_t limit = {10, interval_sec};
    case_t test;
    uint64_t first_ms = 0;
    uint64_t last_ms = 0;

    other.share_ms = share_ms;
    join(&test);
    test.member.share_ms = share_ms;
    for (uint64_t ms = 1001; ms < 2 * share_ms; ms += 1000) {
        if (rlr_member_usable_share(&test.member, &other, key, limit, ms) > 0) {
            first_ms = first_ms == 0 ? ms : first_ms;
            last_ms = ms;
        }
    }
    assert_int_equal(rlr_period_has_share(interval_sec, share_ms), last_ms > 0);
    return last_ms - first_ms;
}

static void a_share_is_admitted_for_what_is_left_of_its_time(void **state)
{
    static const uint64_t hour_ms = 3600000;
    static const uint64_t day_ms = 24 * 3600000;

    assert_in_range(find_share_time(10, hour_ms), hour_ms - 26000,
                    hour_ms - 16000);
    assert_int_equal(find_share_time(3600, hour_ms), 0);
    assert_in_range(find_share_time(3600, day_ms), day_ms - 3800000,
                    day_ms - 3600000);
    /* A window has intervals of a day at most, and the share needs more. */
    assert_true(rlr_period_share_sec(86400) > RLR_LIMIT_INTERVAL_SEC_MAX);
    assert_int_equal(find_share_time(86400, day_ms), 0);
    assert_int_equal(find_share_time(86400, 2 * day_ms), 0);
    assert_int_equal(find_share_time(10, 10000), 0);
}

static uint64_t local_wait(const case_t *test, uint64_t now_ms)
{
    return rlr_member_share_wait(&test->member, &config, key, ten, now_ms);
}

static void a_host_that_is_cut_off_gives_the_time_of_its_share(void **state)
{
    case_t test;
    uint64_t cut_off_ms = 1001 + rlr_period_cut_off(ten.interval_sec);

    begin(&test);
    assert_int_equal(local_wait(&test, 1000), 0);
    join(&test);
    /* The store answers. */
    assert_int_equal(local_wait(&test, 2000), 0);
    assert_int_equal(local_wait(&test, 5000), cut_off_ms - 5000);
    /* Without the store it will not be admitted. */
    assert_int_equal(local_wait(&test, 1001 + 3600000), 0);
}

/* The host was connected at 1500 ms, too, and the reply to an earlier call
 * arrives after that. */
static void a_reply_to_an_earlier_call_does_not_set_times_back(void **state)
{
    uint64_t cut_off_ms = 1500 + rlr_period_cut_off(ten.interval_sec);
    uint64_t end_ms = 1500 + 3600000 - rlr_period_drift(3600000);
    case_t test;

    join(&test);
    send_next(&test, 1500);
    assert_true(answer(&test, 1500, 1501));
    assert_true(answer(&test, 1200, 1600));
    assert_int_equal(local(&test, cut_off_ms - 1), 0);
    assert_int_equal(local(&test, cut_off_ms), 2);
    assert_int_equal(local(&test, end_ms - 1), 2);
    assert_int_equal(local(&test, end_ms), 0);
    assert_int_equal(send_next(&test, 3499), RLR_MESSAGE_HEARTBEAT);
}

/* The store reserves it from then on. */
static void the_time_of_a_share_counts_from_the_last_heartbeat(void **state)
{
    uint64_t end_ms = 1001 + 3600000 - rlr_period_drift(3600000);
    case_t test;

    join(&test);
    assert_int_equal(send_next(&test, 100000), RLR_MESSAGE_HELLO);
    assert_false(answer(&test, 100000, 100001));
    assert_int_equal(local(&test, end_ms - 1), 2);
    assert_int_equal(local(&test, end_ms), 0);
}

/* So T has passed since the base, which is not later than the heartbeat. */
static void a_host_is_cut_off_for_longer_than_its_share_is_counted(void **state)
{
    for (uint32_t sec = 1; sec <= RLR_LIMIT_INTERVAL_SEC_MAX; sec++) {
        assert_true(rlr_period_cut_off(sec) >= RLR_PERIOD_CALL_MS
                        + (uint64_t)rlr_period_share_sec(sec) * 1000);
    }
}

static uint32_t get_flags(case_t *test, const rlr_member_config_t *of,
                          uint64_t now_ms)
{
    rlr_member_fill(&test->call, &test->member, of, RLR_MESSAGE_HEARTBEAT,
                    now_ms);
    return test->call.flags;
}

static void a_host_brings_its_number_while_no_other_one_can_have_it(
    void **state)
{
    rlr_member_config_t closed = config;
    uint64_t end_ms = 1001 + 3600000 - rlr_period_drift(3600000);
    case_t test;

    closed.share_ms = 0;
    join(&test);
    assert_true((get_flags(&test, &config, end_ms - 1) & RLR_MESSAGE_BRING)
                != 0);
    assert_int_equal(get_flags(&test, &config, end_ms) & RLR_MESSAGE_BRING, 0);
    /* Without a share until it may be replaced. */
    test.member.share_ms = 0;
    assert_true((get_flags(&test, &closed, 59000) & RLR_MESSAGE_BRING) != 0);
    assert_int_equal(get_flags(&test, &closed, 59001) & RLR_MESSAGE_BRING, 0);
}

static void a_host_whose_number_was_another_ones_waits_for_it(void **state)
{
    case_t test;

    join(&test);
    test.reply.base_offset_ms = 100000;
    send_next(&test, 1500);
    assert_true(answer(&test, 1500, 1501));
    assert_int_equal(local(&test, 60000), 0);
    assert_int_equal(local(&test, 200000), 0);
    /* Without a heartbeat after the base it has no right to the number. */
    send_next(&test, 1600);
    assert_int_equal(test.call.flags & RLR_MESSAGE_BRING, 0);
}

/* Neither admitted while the host is cut off, nor brought to a new epoch. */
static void assert_no_share(const case_t *test,
                            const rlr_member_config_t *changed)
{
    rlr_message_call_t call;

    assert_int_equal(
        rlr_member_usable_share(&test->member, changed, key, ten, 100000), 0);
    assert_int_equal(
        rlr_member_share_wait(&test->member, changed, key, ten, 100000), 0);
    rlr_member_fill(&call, &test->member, changed, RLR_MESSAGE_HEARTBEAT, 1500);
    assert_int_equal(call.flags & RLR_MESSAGE_BRING, 0);
}

static void a_share_is_of_the_configuration_that_it_was_given_for(void **state)
{
    rlr_member_config_t more = config;
    rlr_member_config_t longer = config;
    rlr_member_config_t closed = config;
    case_t test;

    join(&test);
    assert_int_equal(local(&test, 100000), 2);
    more.members++;
    longer.share_ms *= 2;
    closed.share_ms = 0;
    assert_no_share(&test, &more);
    assert_no_share(&test, &longer);
    assert_no_share(&test, &closed);
    /* Of a number of the new configuration it has a share. */
    send_next(&test, 1500);
    test.call.members = more.members;
    assert_true(answer(&test, 1500, 1501));
    assert_int_equal(
        rlr_member_usable_share(&test.member, &more, key, ten, 100000), 2);
    assert_int_equal(local(&test, 100000), 0);
}

static void an_answer_ends_the_use_of_the_share(void **state)
{
    case_t test;

    join(&test);
    assert_int_equal(local(&test, 100000), 2);
    rlr_member_use_share(&test.member, ten.interval_sec, 100000);
    assert_int_equal(send_next(&test, 100000), RLR_MESSAGE_HELLO);
    answer(&test, 100000, 100001);
    assert_int_equal(local(&test, 100001), 0);
    assert_int_equal(send_next(&test, 100001), RLR_MESSAGE_HEARTBEAT);
    assert_int_equal(test.call.flags,
                     RLR_MESSAGE_STAYED | RLR_MESSAGE_BRING | RLR_MESSAGE_USED);
    assert_true(answer(&test, 100001, 100002));
    send_next(&test, 100003);
    assert_int_equal(test.call.flags, RLR_MESSAGE_STAYED | RLR_MESSAGE_BRING);
}

static void marks_are_reported_to_a_new_epoch_before_the_heartbeat(void **state)
{
    case_t test;
    bool is_exclusive;

    join(&test);
    change_epoch(&test, 1500);
    assert_int_equal(send_next(&test, 1500), RLR_MESSAGE_HELLO);
    answer(&test, 1500, 1501);
    assert_int_equal(rlr_member_next(&test.member, &is_exclusive, 1502),
                     RLR_MESSAGE_REPORT);
    assert_true(is_exclusive);
    rlr_member_reported(&test.member, test.member.generation);
    assert_int_equal(send_next(&test, 1503), RLR_MESSAGE_HEARTBEAT);
    assert_int_equal(test.call.flags, RLR_MESSAGE_ATTEST | RLR_MESSAGE_BRING);
    assert_int_equal(test.call.joined_offset_ms, 502 - 1503);
}

static void a_host_that_has_used_its_share_does_not_attest(void **state)
{
    case_t test;

    join(&test);
    rlr_member_use_share(&test.member, ten.interval_sec, 1400);
    change_epoch(&test, 1500);
    send_next(&test, 1500);
    answer(&test, 1500, 1501);
    rlr_member_reported(&test.member, test.member.generation);
    send_next(&test, 1503);
    assert_int_equal(test.call.flags & RLR_MESSAGE_ATTEST, 0);
}

/* A host that has reported to a new epoch. */
static void report_to_new_epoch(case_t *test)
{
    change_epoch(test, 1500);
    send_next(test, 1500);
    answer(test, 1500, 1501);
    rlr_member_reported(&test->member, test->member.generation);
}

static void a_host_that_has_lost_marks_does_not_attest_while_they_count(
    void **state)
{
    case_t test;

    join(&test);
    test.member.lost_until_ms = 1600;
    report_to_new_epoch(&test);
    assert_int_equal(get_flags(&test, &config, 1599) & RLR_MESSAGE_ATTEST, 0);
    assert_true((get_flags(&test, &config, 1600) & RLR_MESSAGE_ATTEST) != 0);
}

/* A minute after it another host may have had the number. */
static void a_host_attests_until_a_minute_after_its_last_heartbeat(void **state)
{
    case_t test;

    join(&test);
    report_to_new_epoch(&test);
    assert_true((get_flags(&test, &config, 59000) & RLR_MESSAGE_ATTEST) != 0);
    assert_int_equal(get_flags(&test, &config, 59001) & RLR_MESSAGE_ATTEST, 0);
}

static void a_host_attests_to_an_epoch_once(void **state)
{
    case_t test;

    join(&test);
    report_to_new_epoch(&test);
    assert_int_equal(send_next(&test, 1503), RLR_MESSAGE_HEARTBEAT);
    assert_true(answer(&test, 1503, 1504));
    assert_int_equal(get_flags(&test, &config, 1505),
                     RLR_MESSAGE_STAYED | RLR_MESSAGE_BRING);
}

static void a_host_whose_heartbeat_is_ignored_says_hello(void **state)
{
    static const rlr_message_status_t ignored[] = {RLR_MESSAGE_LATE,
                                                   RLR_MESSAGE_OTHER};
    case_t test;

    for (int i = 0; i < 2; i++) {
        join(&test);
        send_next(&test, 1500);
        test.reply.status = ignored[i];
        assert_false(answer(&test, 1500, 1501));
        assert_int_equal(send_next(&test, 1502), RLR_MESSAGE_HELLO);
    }
}

/* Another one may get the number before its next heartbeat. */
static void a_host_without_a_number_is_not_connected(void **state)
{
    bool is_exclusive;
    case_t test;

    join(&test);
    send_next(&test, 1500);
    test.reply.status = RLR_MESSAGE_FULL;
    assert_false(answer(&test, 1500, 1501));
    assert_int_equal(get_flags(&test, &config, 1502) & RLR_MESSAGE_STAYED, 0);
    rlr_member_next(&test.member, &is_exclusive, 1502);
    assert_true(is_exclusive);
}

static void a_host_that_leaves_admits_nothing_more(void **state)
{
    case_t test;
    rlr_member_t stopped;

    join(&test);
    rlr_member_use_share(&test.member, ten.interval_sec, 1400);
    send_next(&test, 1500);
    rlr_member_leave(&test.member, &stopped);
    /* The reply to a call of before. */
    assert_false(answer(&test, 1500, 1501));
    assert_int_equal(local(&test, 100000), 0);
    rlr_member_fill(&test.call, &stopped, &config, RLR_MESSAGE_HEARTBEAT, 1502);
    assert_int_equal(test.call.number, 2);
    assert_int_equal(test.call.flags,
                     RLR_MESSAGE_STAYED | RLR_MESSAGE_BRING | RLR_MESSAGE_USED);
}

static void the_shares_of_all_numbers_add_up_to_the_limit(void **state)
{
    for (uint32_t count = 1; count < 40; count++) {
        for (uint32_t members = 1; members < 20; members++) {
            unsigned char some[RLR_MESSAGE_KEY_BYTES] = {
                (unsigned char)(count * 31 + members)};
            uint32_t sum = 0;

            for (uint32_t i = 0; i < members; i++) {
                sum += rlr_member_share((int)i, count, members, some);
            }
            assert_int_equal(sum, count);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_host_says_hello_before_its_first_heartbeat),
        CHECK_TEST(a_heartbeat_is_void_half_a_second_after_it_was_sent),
        CHECK_TEST(a_host_without_replies_sends_no_heartbeat),
        CHECK_TEST(late_replies_and_those_of_an_earlier_epoch_are_not_used),
        CHECK_TEST(a_host_that_is_cut_off_admits_its_share_after_a_while),
        CHECK_TEST(a_share_is_admitted_for_what_is_left_of_its_time),
        CHECK_TEST(a_host_that_is_cut_off_gives_the_time_of_its_share),
        CHECK_TEST(a_reply_to_an_earlier_call_does_not_set_times_back),
        CHECK_TEST(the_time_of_a_share_counts_from_the_last_heartbeat),
        CHECK_TEST(a_host_is_cut_off_for_longer_than_its_share_is_counted),
        CHECK_TEST(a_host_brings_its_number_while_no_other_one_can_have_it),
        CHECK_TEST(a_host_whose_number_was_another_ones_waits_for_it),
        CHECK_TEST(a_share_is_of_the_configuration_that_it_was_given_for),
        CHECK_TEST(an_answer_ends_the_use_of_the_share),
        CHECK_TEST(marks_are_reported_to_a_new_epoch_before_the_heartbeat),
        CHECK_TEST(a_host_that_has_used_its_share_does_not_attest),
        CHECK_TEST(a_host_that_has_lost_marks_does_not_attest_while_they_count),
        CHECK_TEST(a_host_attests_until_a_minute_after_its_last_heartbeat),
        CHECK_TEST(a_host_attests_to_an_epoch_once),
        CHECK_TEST(a_host_whose_heartbeat_is_ignored_says_hello),
        CHECK_TEST(a_host_without_a_number_is_not_connected),
        CHECK_TEST(a_host_that_leaves_admits_nothing_more),
        CHECK_TEST(the_shares_of_all_numbers_add_up_to_the_limit),
    };

    return CHECK_RUN(tests);
}
