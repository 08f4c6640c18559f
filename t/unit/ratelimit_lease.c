/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/lease.c */
/* A host's lease of one key. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/protocol/lease.h"

static const unsigned char key[RLR_MESSAGE_KEY_BYTES] = {7};
static const rlr_limit_t small = {10, 10};
static const rlr_limit_t large = {6400, 10};

typedef struct case_t {
    rlr_lease_t lease;
    rlr_message_item_t item;
    uint64_t wait_ms;
} case_t;

static void begin(case_t *test, rlr_limit_t limit)
{
    memset(test, 0, sizeof(*test));
    rlr_lease_init(&test->lease, key, limit);
}

/* A call for `waiting` requests, sent and answered at once. */
static uint32_t ask(case_t *test, uint32_t waiting, uint32_t granted,
                    int64_t wait_ms, uint64_t now_ms)
{
    rlr_message_grant_t grant = {granted, wait_ms, 0, 0};

    rlr_lease_request(&test->item, &test->lease, waiting, test->item.tag + 1,
                      now_ms);
    return rlr_lease_grant(&test->lease, &test->item, &grant, now_ms, now_ms);
}

static rlr_lease_result_t take(case_t *test, uint64_t now_ms)
{
    return rlr_lease_take(&test->lease, now_ms, &test->wait_ms);
}

static void small_limits_have_no_lease(void **state)
{
    case_t test;

    begin(&test, small);
    assert_int_equal(take(&test, 1000), RLR_LEASE_ASK);
    assert_int_equal(ask(&test, 3, 3, 0, 1000), 3);
    assert_int_equal(test.item.wanted, 3);
    assert_int_equal(take(&test, 1000), RLR_LEASE_ASK);
    /* More than was requested for those that wait cannot be used. */
    ask(&test, 1, 5, 0, 1000);
    assert_int_equal(take(&test, 1000), RLR_LEASE_ASK);
}

static void a_refusal_is_cached_until_an_admission_expires(void **state)
{
    case_t test;

    begin(&test, small);
    assert_int_equal(ask(&test, 1, 0, 700, 1000), 0);
    assert_int_equal(take(&test, 1699), RLR_LEASE_REFUSED);
    assert_int_equal(test.wait_ms, 1);
    assert_int_equal(take(&test, 1700), RLR_LEASE_ASK);
}

static void a_refusal_by_leases_is_cached_briefly(void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 0, 9000, 1000);
    assert_int_equal(take(&test, 1099), RLR_LEASE_REFUSED);
    assert_int_equal(take(&test, 1100), RLR_LEASE_ASK);
}

/* A reset at another host reaches this one so. */
static void a_refusal_is_cached_for_a_second_at_most(void **state)
{
    case_t test;

    begin(&test, small);
    ask(&test, 1, 0, 9000, 1000);
    assert_int_equal(take(&test, 1999), RLR_LEASE_REFUSED);
    assert_int_equal(test.wait_ms, 8001);
    assert_int_equal(take(&test, 2000), RLR_LEASE_ASK);
}

static void a_refusal_without_a_wait_is_cached_briefly(void **state)
{
    case_t test;

    begin(&test, small);
    ask(&test, 1, 0, -1, 1000);
    assert_int_equal(take(&test, 1099), RLR_LEASE_REFUSED);
    assert_int_equal(take(&test, 1100), RLR_LEASE_ASK);
}

static void a_call_that_wants_nothing_is_not_refused(void **state)
{
    case_t test;

    begin(&test, small);
    ask(&test, 0, 0, 0, 1000);
    assert_int_equal(test.item.wanted, 0);
    assert_int_equal(take(&test, 1000), RLR_LEASE_ASK);
    /* Nor does it end a refusal. */
    ask(&test, 1, 0, 700, 1000);
    ask(&test, 0, 0, 0, 1100);
    assert_int_equal(take(&test, 1699), RLR_LEASE_REFUSED);
}

/* The sum of the marks that count. */
static uint32_t sum_marks(const case_t *test, uint64_t now_ms)
{
    rlr_message_mark_t marks[RLR_LEASE_MARKS];
    uint32_t count = rlr_lease_report(marks, &test->lease, now_ms);
    uint32_t sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        sum += marks[i].amount;
    }
    return sum;
}

static void another_limit_ends_the_lease_and_keeps_the_marks(void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 11, 0, 1000);
    rlr_lease_change(&test.lease, small);
    assert_int_equal(take(&test, 1001), RLR_LEASE_ASK);
    assert_false(rlr_lease_is_due(&test.lease, 1100));
    assert_int_equal(sum_marks(&test, 1001), 11);
    assert_true(rlr_limit_equal(test.lease.limit, small));
}

static void another_limit_ends_a_cached_refusal(void **state)
{
    case_t test;

    begin(&test, small);
    ask(&test, 1, 0, 700, 1000);
    rlr_lease_change(&test.lease, large);
    assert_int_equal(take(&test, 1001), RLR_LEASE_ASK);
}

static void a_reset_forgets_the_lease_and_its_marks(void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 11, 0, 1000);
    rlr_lease_reset(&test.lease);
    assert_int_equal(take(&test, 1001), RLR_LEASE_ASK);
    assert_int_equal(sum_marks(&test, 1001), 0);
    assert_memory_equal(test.lease.key, key, sizeof(key));
    assert_true(rlr_limit_equal(test.lease.limit, large));
}

static void a_reset_forgets_a_cached_refusal(void **state)
{
    case_t test;

    begin(&test, small);
    ask(&test, 1, 0, 700, 1000);
    rlr_lease_reset(&test.lease);
    assert_int_equal(take(&test, 1001), RLR_LEASE_ASK);
}

static void a_mark_counts_until_it_has_expired_by_any_clock(void **state)
{
    case_t test;
    /* T and the lease, a rounded millisecond, and a 512th. */
    uint64_t until_ms = 1000 + 10156 + 1 + 20;

    begin(&test, large);
    ask(&test, 1, 11, 0, 1000);
    assert_int_equal(sum_marks(&test, until_ms - 1), 11);
    assert_int_equal(sum_marks(&test, until_ms), 0);
}

static void grants_that_arrive_in_another_order_all_count(void **state)
{
    case_t test;

    begin(&test, small);
    ask(&test, 1, 1, 0, 2000);
    ask(&test, 1, 1, 0, 1900);
    for (uint32_t i = 0; i < 5; i++) {
        ask(&test, 1, 1, 0, 2001);
    }
    /* After the time of the second one, which was joined with the first. */
    assert_int_equal(sum_marks(&test, 11950), 7);
    assert_int_equal(sum_marks(&test, 12022), 0);
}

static void the_last_reply_says_what_is_left_of_the_limit(void **state)
{
    rlr_message_grant_t grant = {1, 0, 5, 700};
    case_t test;

    begin(&test, small);
    rlr_lease_request(&test.item, &test.lease, 1, 1, 1000);
    rlr_lease_grant(&test.lease, &test.item, &grant, 1000, 1010);
    assert_int_equal(test.lease.remaining, 5);
    assert_int_equal(test.lease.reset_at_ms, 1710);
}

static void a_lease_ends_before_the_store_forgets_it(void **state)
{
    case_t test;

    begin(&test, large);
    assert_int_equal(ask(&test, 1, 11, 0, 1000), 1);
    assert_int_equal(take(&test, 1000), RLR_LEASE_ADMITTED);
    /* T / 64 = 156 ms, less what clocks may differ. */
    assert_int_equal(take(&test, 1154), RLR_LEASE_ADMITTED);
    assert_int_equal(take(&test, 1155), RLR_LEASE_ASK);
}

static void a_lease_is_used_as_often_as_it_was_granted(void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 11, 0, 1000);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(take(&test, 1001), RLR_LEASE_ADMITTED);
    }
    assert_int_equal(take(&test, 1001), RLR_LEASE_ASK);
}

static void more_is_requested_before_a_lease_is_used_up(void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 11, 0, 1000);
    assert_false(rlr_lease_is_due(&test.lease, 1001));
    for (int i = 0; i < 5; i++) {
        take(&test, 1001);
    }
    assert_true(rlr_lease_is_due(&test.lease, 1001));
    rlr_lease_request(&test.item, &test.lease, 0, 9, 1010);
    assert_true(test.item.wanted > 0);
    assert_true(test.item.wanted <= large.count / 32);
}

static void a_lease_of_which_some_was_used_is_renewed_after_half_its_time(
    void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 11, 0, 1000);
    /* It ends after 155 ms; one that was not used is not renewed. */
    assert_false(rlr_lease_is_due(&test.lease, 1154));
    take(&test, 1001);
    assert_false(rlr_lease_is_due(&test.lease, 1076));
    assert_true(rlr_lease_is_due(&test.lease, 1077));
    assert_false(rlr_lease_is_due(&test.lease, 1155));
}

static void nothing_more_is_requested_while_a_refusal_is_cached(void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 0, 9000, 1000);
    ask(&test, 1, 11, 0, 1010);
    for (int i = 0; i < 8; i++) {
        take(&test, 1011);
    }
    assert_false(rlr_lease_is_due(&test.lease, 1099));
    assert_true(rlr_lease_is_due(&test.lease, 1100));
}

static void after_a_pause_only_what_waits_is_requested(void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 200, 0, 1000);
    for (int i = 0; i < 199; i++) {
        take(&test, 1001);
    }
    rlr_lease_request(&test.item, &test.lease, 1, 9, 1300);
    assert_true(test.item.wanted > 1);
    rlr_lease_request(&test.item, &test.lease, 1, 9, 1400);
    assert_int_equal(test.item.wanted, 1);
}

static void a_lease_is_closed_once(void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 11, 0, 1000);
    ask(&test, 0, 8, 0, 1010);
    /* The store takes the closing, and grants nothing. */
    ask(&test, 1, 0, 9000, 1020);
    assert_int_not_equal(test.item.closed_tag, 0);
    rlr_lease_request(&test.item, &test.lease, 1, 9, 1200);
    assert_int_equal(test.item.closed_tag, 0);
}

static void a_replaced_lease_is_closed_with_its_use(void **state)
{
    case_t test;

    begin(&test, large);
    ask(&test, 1, 11, 0, 1000);
    take(&test, 1001);
    take(&test, 1001);
    ask(&test, 0, 8, 0, 1010);
    rlr_lease_request(&test.item, &test.lease, 0, 9, 1011);
    assert_int_equal(test.item.closed_tag, 1);
    assert_int_equal(test.item.closed_used, 3);
}

static void all_grants_that_count_are_reported(void **state)
{
    case_t test;
    rlr_message_mark_t marks[RLR_LEASE_MARKS];
    uint32_t sum = 0;
    uint32_t count;

    begin(&test, small);
    for (uint32_t i = 0; i < 10; i++) {
        ask(&test, 1, 1, 0, 1000 + i);
    }
    count = rlr_lease_report(marks, &test.lease, 11000);
    for (uint32_t i = 0; i < count; i++) {
        sum += marks[i].amount;
        assert_memory_equal(marks[i].key, key, sizeof(key));
        assert_true(marks[i].expires_in_ms > 0 && marks[i].expires_in_ms < 100);
    }
    assert_int_equal(sum, 10);
    assert_true(rlr_lease_live_until(&test.lease, 11000) > 11000);
    assert_int_equal(rlr_lease_report(marks, &test.lease, 11100), 0);
    assert_int_equal(rlr_lease_live_until(&test.lease, 11100), 0);
}

static void a_host_that_stops_returns_what_it_has_not_used(void **state)
{
    case_t test;
    rlr_message_item_t items[RLR_LEASE_CLOSINGS];

    begin(&test, large);
    ask(&test, 1, 5, 0, 1000);
    take(&test, 1001);
    ask(&test, 1, 9, 0, 1002);
    take(&test, 1003);
    take(&test, 1003);
    assert_int_equal(rlr_lease_close(items, &test.lease, 1004), 2);
    assert_int_equal(items[0].closed_tag, 1);
    assert_int_equal(items[0].closed_used, 2);
    assert_int_equal(items[1].closed_tag, 2);
    assert_int_equal(items[1].closed_used, 3);
    assert_int_equal(items[1].wanted, 0);
    assert_memory_equal(items[1].key, key, sizeof(items[1].key));
    /* Nothing is left, and nothing is returned twice. */
    assert_int_equal(take(&test, 1005), RLR_LEASE_ASK);
    assert_int_equal(rlr_lease_close(items, &test.lease, 1005), 0);
}

static void a_lease_that_no_longer_counts_is_not_returned(void **state)
{
    case_t test;
    rlr_message_item_t items[RLR_LEASE_CLOSINGS];

    begin(&test, large);
    ask(&test, 1, 5, 0, 1000);
    assert_int_equal(rlr_lease_close(items, &test.lease, 30000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(small_limits_have_no_lease),
        CHECK_TEST(a_refusal_is_cached_until_an_admission_expires),
        CHECK_TEST(a_refusal_by_leases_is_cached_briefly),
        CHECK_TEST(a_refusal_is_cached_for_a_second_at_most),
        CHECK_TEST(a_refusal_without_a_wait_is_cached_briefly),
        CHECK_TEST(a_call_that_wants_nothing_is_not_refused),
        CHECK_TEST(another_limit_ends_the_lease_and_keeps_the_marks),
        CHECK_TEST(another_limit_ends_a_cached_refusal),
        CHECK_TEST(a_reset_forgets_the_lease_and_its_marks),
        CHECK_TEST(a_reset_forgets_a_cached_refusal),
        CHECK_TEST(a_mark_counts_until_it_has_expired_by_any_clock),
        CHECK_TEST(grants_that_arrive_in_another_order_all_count),
        CHECK_TEST(the_last_reply_says_what_is_left_of_the_limit),
        CHECK_TEST(
            a_lease_of_which_some_was_used_is_renewed_after_half_its_time),
        CHECK_TEST(nothing_more_is_requested_while_a_refusal_is_cached),
        CHECK_TEST(after_a_pause_only_what_waits_is_requested),
        CHECK_TEST(a_lease_is_closed_once),
        CHECK_TEST(a_lease_ends_before_the_store_forgets_it),
        CHECK_TEST(a_lease_is_used_as_often_as_it_was_granted),
        CHECK_TEST(more_is_requested_before_a_lease_is_used_up),
        CHECK_TEST(a_replaced_lease_is_closed_with_its_use),
        CHECK_TEST(all_grants_that_count_are_reported),
        CHECK_TEST(a_host_that_stops_returns_what_it_has_not_used),
        CHECK_TEST(a_lease_that_no_longer_counts_is_not_returned),
    };

    return CHECK_RUN(tests);
}
