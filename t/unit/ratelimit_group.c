/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../t/bench/group_epoch.c */
/* OBJECTS: ../mod_ratelimit_regional/protocol/member.c */
/* OBJECTS: ../t/bench/group_store.c ../t/bench/group_marks.c */
/* The rules of hosts and store together: hosts that are replaced, or leave. */
#include "ratelimit_group_fixture.h"

/* Host 0 is cut off, and its number given to host 1, which was killed before:
 * all numbers have a host connected while host 0 admits its share. */
static void a_number_is_reserved_while_its_earlier_host_may_use_it(void **state)
{
    case_t test;

    begin(&test);
    /* Until the share of the killed host is no longer reserved. */
    pass(&test, 277000, 5);
    start_host(&test, 1);
    pass(&test, 61000, 4);
    pass(&test, 80000, 6);
    assert_int_equal(test.hosts[1].member.number, 0);
    assert_int_equal(local(&test, 0), 3);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    /* Until it may not be used, and is not. */
    pass(&test, 200000, 6);
    assert_int_equal(local(&test, 0), 0);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

/* Without RateLimitStoreShareTime: as long as the host may bring its number to
 * another server, which answers at the same time as this one for up to 60 s. */
static void a_number_is_reserved_while_its_host_may_bring_it(void **state)
{
    static const uint64_t may_bring_ms = 58000;
    static const uint64_t two_stores_ms = 60000;
    case_t test;
    rlr_message_call_t sent;
    uint64_t cut_ms;

    prepare(&test);
    for (int i = 0; i < HOSTS; i++) {
        test.hosts[i].config.share_ms = 0;
    }
    pass(&test, 61000, 7);
    cut_ms = test.now_ms - 100;
    rlr_member_fill(&sent, &test.hosts[0].member, &test.hosts[0].config,
                    RLR_MESSAGE_HEARTBEAT, cut_ms + may_bring_ms - 1);
    assert_true((sent.flags & RLR_MESSAGE_BRING) != 0);
    pass(&test, may_bring_ms + two_stores_ms, 6);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    pass(&test, 30000, 6);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

/* Asks for one admission when the wait is nearly over, and then. */
static void assert_wait_is_true(case_t *test, unsigned mask)
{
    uint64_t at_ms = test->now_ms + (uint64_t)test->wait_ms;

    pass(test, at_ms - test->now_ms - 100, mask);
    test->now_ms = at_ms - 1;
    assert_int_equal(call(test, 2, 1, 0), 0);
    assert_int_equal(test->wait_ms, 1);
    test->now_ms = at_ms;
    assert_int_equal(call(test, 2, 1, 0), 1);
}

static void the_wait_is_true_while_a_share_is_reserved(void **state)
{
    case_t test;

    begin(&test);
    /* The only admission is the share of host 0, which dies. */
    test.limit.count = 1;
    pass(&test, 5000, 6);
    assert_int_equal(call(&test, 2, 1, 0), 0);
    assert_true(test.wait_ms > 200000);
    assert_wait_is_true(&test, 6);
    end(&test);
}

static void the_wait_is_true_while_an_admission_and_a_share_count(void **state)
{
    case_t test;

    begin(&test);
    pass(&test, 5000, 6);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    assert_int_equal(call(&test, 2, 1, 0), 0);
    assert_int_equal(test.wait_ms, 10001);
    assert_wait_is_true(&test, 6);
    end(&test);
}

static void the_wait_is_true_after_a_first_start(void **state)
{
    case_t test;

    prepare(&test);
    pass(&test, 1000, 7);
    assert_int_equal(call(&test, 2, 1, 0), 0);
    assert_wait_is_true(&test, 7);
    end(&test);
}

static void the_share_of_a_host_that_has_left_is_not_reserved(void **state)
{
    case_t test;

    begin(&test);
    call(&test, 1, 0, RLR_MESSAGE_LEAVE);
    pass(&test, 10000, 5);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

static void a_new_host_takes_the_number_of_one_that_has_left(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(call(&test, 2, 4, 0), 4);
    call(&test, 1, 0, RLR_MESSAGE_LEAVE);
    start_host(&test, 1);
    call(&test, 1, 0, 0);
    /* The four of before count. */
    assert_int_equal(call(&test, 1, 9, 0), 5);
    assert_int_equal(test.hosts[1].member.number, 1);
    end(&test);
}

/* It may have had another number, and used the share of that. */
static void a_host_that_is_not_new_waits_for_the_number(void **state)
{
    case_t test;

    begin(&test);
    call(&test, 1, 0, RLR_MESSAGE_LEAVE);
    start_host(&test, 1);
    test.hosts[1].member.was_member = true;
    call(&test, 1, 0, 0);
    call(&test, 1, 0, 0);
    assert_int_equal(test.hosts[1].member.number, 1);
    pass(&test, 60000, 7);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    end(&test);
}

static void the_share_that_a_host_has_used_before_it_left_counts(void **state)
{
    case_t test;

    begin(&test);
    pass(&test, 40000, 5);
    assert_int_equal(local(&test, 1), 3);
    rlr_member_use_share(&test.hosts[1].member, nine.interval_sec, test.now_ms);
    call(&test, 1, 0, 0);
    call(&test, 1, 0, RLR_MESSAGE_LEAVE);
    start_host(&test, 1);
    call(&test, 1, 0, 0);
    call(&test, 1, 0, 0);
    assert_int_equal(test.hosts[1].member.number, 1);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    pass(&test, 15000, 7);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

static void a_call_of_a_host_that_has_left_is_not_executed(void **state)
{
    case_t test;
    rlr_member_t before;

    begin(&test);
    before = test.hosts[1].member;
    call(&test, 1, 0, RLR_MESSAGE_LEAVE);
    test.hosts[1].member = before;
    assert_int_equal(call(&test, 1, 9, 0), 0);
    /* Nor does a second leave take another number. */
    start_host(&test, 1);
    call(&test, 1, 0, 0);
    call(&test, 1, 0, 0);
    test.hosts[1].config.id[0]--;
    test.hosts[1].member = before;
    call(&test, 1, 0, RLR_MESSAGE_LEAVE);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_number_is_reserved_while_its_earlier_host_may_use_it),
        CHECK_TEST(a_number_is_reserved_while_its_host_may_bring_it),
        CHECK_TEST(the_wait_is_true_while_a_share_is_reserved),
        CHECK_TEST(the_wait_is_true_while_an_admission_and_a_share_count),
        CHECK_TEST(the_wait_is_true_after_a_first_start),
        CHECK_TEST(the_share_of_a_host_that_has_left_is_not_reserved),
        CHECK_TEST(a_new_host_takes_the_number_of_one_that_has_left),
        CHECK_TEST(a_host_that_is_not_new_waits_for_the_number),
        CHECK_TEST(the_share_that_a_host_has_used_before_it_left_counts),
        CHECK_TEST(a_call_of_a_host_that_has_left_is_not_executed),
    };

    return CHECK_RUN(tests);
}
