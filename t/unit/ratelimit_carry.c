/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* Another configuration on the same segment (segment.c), or on one of another
 * size (carry.c): no key gets more. */
#include "check.h"

#include "../../mod_ratelimit_regional/counter/carry.h"
#include "ratelimit_segment.h"

static const rlr_limit_t five = {5, 10};
static const rlr_limit_t eight = {8, 10};
static const rlr_limit_t three = {3, 10};

/* The view of the next configuration on the same memory. */
static segment_t attach_again(const segment_t *segment)
{
    segment_t next = *segment;

    assert_int_equal(rlr_segment_attach(&next.table, next.memory, next.size,
                                        segment_rows, 3, next.rows),
                     RLR_TABLE_OK);
    next.clock.baton = segment->clock.baton;
    return next;
}

static uint32_t use_up(segment_t *segment, uint64_t key, rlr_limit_t limit)
{
    uint32_t admitted = 0;

    while (segment_admit(segment, key, limit).window.admitted) {
        admitted++;
    }
    return admitted;
}

static void windows_and_counters_persist_over_a_restart(void **state)
{
    rlr_counters_t counters;
    segment_t segment;
    segment_t next;

    segment_make(&segment, 64, 1);
    assert_int_equal(use_up(&segment, 1, five), 5);
    next = attach_again(&segment);
    assert_int_equal(use_up(&next, 1, five), 0);
    assert_int_equal(use_up(&segment, 1, five), 0);
    rlr_walk_counters(&next.table, next.rows[0], &counters);
    assert_int_equal(counters.admitted, 5);
    assert_int_equal(counters.refused, 3);
    segment_drop(&segment);
}

static void a_larger_limit_admits_the_difference_to_the_old_one(void **state)
{
    segment_t segment;
    segment_t next;

    segment_make(&segment, 64, 2);
    assert_int_equal(use_up(&segment, 1, five), 5);
    next = attach_again(&segment);
    assert_int_equal(segment_peek(&next, 1, eight).window.remaining, 3);
    assert_int_equal(use_up(&next, 1, eight), 3);
    segment_drop(&segment);
}

static void a_smaller_limit_refuses_until_enough_expired(void **state)
{
    rlr_table_decision_t decision;
    segment_t segment;
    segment_t next;

    segment_make(&segment, 64, 3);
    for (int i = 0; i < 5; i++) {
        segment_admit(&segment, 1, five);
        segment.time.us += 1000000;
    }
    next = attach_again(&segment);
    decision = segment_admit(&next, 1, three);
    assert_false(decision.window.admitted);
    /* Of those at 0, 1, 2, 3, 4 s the one at 2 s must have expired; it is 5
     * s. */
    assert_int_equal(decision.window.wait_ms, 7000);
    segment_drop(&segment);
}

static void the_newer_limit_applies_to_children_of_both(void **state)
{
    segment_t segment;
    segment_t next;

    segment_make(&segment, 64, 4);
    next = attach_again(&segment);
    for (int round = 0; round < 20; round++) {
        uint32_t admitted = 0;

        /* Both decide in turn, the older one first. */
        for (int i = 0; i < 20; i++) {
            admitted += segment_admit(&segment, 1, eight).window.admitted;
            admitted += segment_admit(&next, 1, three).window.admitted;
        }
        assert_int_equal(admitted, 3);
        /* A key that only the older children use keeps their limit. */
        assert_int_equal(use_up(&segment, 2, eight), 8);
        segment.time.us += 10001000;
        next.time.us = segment.time.us;
    }
    segment_drop(&segment);
}

/* Fills all slots for ten seconds, by another rule. Five seconds later the
 * newer configuration uses up its limit for key 1, in an overflow window. */
static void charge_without_a_slot(segment_t *segment, segment_t *next,
                                  rlr_limit_t newer)
{
    uint32_t keys[3];

    for (uint64_t key = 0; key < 1000; key++) {
        rlr_table_request_t request = segment_request(segment, &key, five);
        rlr_table_decision_t decision;

        request.row = segment->rows[1];
        rlr_table_admit(&segment->table, &request, &segment->clock, &decision);
    }
    assert_int_equal(
        rlr_walk_live_keys(&segment->table, keys, 3, &segment->clock), 16);
    segment->time.us += 5000000;
    for (uint32_t i = 0; i < newer.count; i++) {
        rlr_table_decision_t decision = segment_admit(next, 1, newer);

        assert_true(decision.overflow);
        assert_true(decision.window.admitted);
    }
}

/* From `before_us` after these charges until they expire, key 1 is refused,
 * whichever children decide first; then it gets a slot. */
static void verify_older_first(rlr_limit_t older, rlr_limit_t newer,
                               uint64_t before_us)
{
    uint64_t over_us = newer.interval_sec * 1000000ULL;
    rlr_table_decision_t decision;
    segment_t segment;
    segment_t next;

    segment_make(&segment, 16, 12);
    next = attach_again(&segment);
    charge_without_a_slot(&segment, &next, newer);
    segment.time.us += before_us;
    decision = segment_admit(&segment, 1, older);
    assert_false(decision.window.admitted);
    assert_true(decision.window.wait_ms > 0);
    assert_int_equal(use_up(&next, 1, newer), 0);
    assert_int_equal(use_up(&segment, 1, older), 0);
    segment.time.us += over_us - before_us;
    decision = segment_admit(&segment, 1, older);
    assert_true(decision.window.admitted);
    assert_false(decision.overflow);
    assert_int_equal(use_up(&next, 1, newer), newer.count - 1);
    segment_drop(&segment);
}

static void a_slot_claimed_by_older_children_keeps_a_larger_count(void **state)
{
    verify_older_first(three, eight, 5500000);
}

static void a_slot_claimed_by_older_children_keeps_a_longer_interval(
    void **state)
{
    static const rlr_limit_t minute = {3, 60};

    verify_older_first(three, minute, 20000000);
}

/* A count within their own limit is kept. */
static void older_children_claim_slots_for_counts_within_their_limit(
    void **state)
{
    static const rlr_limit_t two = {2, 10};
    rlr_table_decision_t decision;
    segment_t segment;
    segment_t next;

    segment_make(&segment, 16, 13);
    next = attach_again(&segment);
    charge_without_a_slot(&segment, &next, two);
    segment.time.us += 5500000;
    decision = segment_admit(&segment, 1, three);
    assert_true(decision.window.admitted);
    assert_false(decision.overflow);
    assert_int_equal(decision.window.remaining, 0);
    segment_drop(&segment);
}

static void a_limit_may_change_repeatedly(void **state)
{
    segment_t segment;
    uint64_t seed = 5;

    segment_make(&segment, 64, 5);
    for (int i = 0; i < 2000; i++) {
        rlr_limit_t limit = {1 + (uint32_t)(sim_random(&seed) % 300), 10};
        segment_t next = attach_again(&segment);
        uint32_t admitted = use_up(&next, 1, limit);

        assert_true(admitted <= limit.count);
        admitted += use_up(&next, 1, limit);
        assert_true(admitted <= limit.count);
        segment.time.us += sim_random(&seed) % 4000000;
    }
    segment_drop(&segment);
}

/* Limits of keys in the tests of another size. */
static rlr_limit_t get_limit(uint64_t key)
{
    rlr_limit_t limit = {1 + (uint32_t)(key % 100), 10};

    return limit;
}

static void fill_some(segment_t *segment, uint64_t keys)
{
    for (uint64_t key = 0; key < keys; key++) {
        for (uint64_t i = 0; i <= key % 7; i++) {
            segment_admit(segment, key, get_limit(key));
        }
        segment->time.us += 1000;
    }
}

static void make_next(segment_t *next, const segment_t *segment, uint32_t slots)
{
    segment_make_with(next, slots, rlr_segment_secret(&segment->table));
    next->time = segment->time;
}

static void windows_and_counters_are_carried_to_a_larger_table(void **state)
{
    rlr_counters_t before;
    rlr_counters_t after;
    segment_t segment;
    segment_t next;

    segment_make(&segment, 512, 6);
    fill_some(&segment, 300);
    make_next(&next, &segment, 4096);
    assert_int_equal(
        rlr_carry_over(&next.table, &segment.table, &segment.clock),
        RLR_TABLE_OK);
    rlr_walk_counters(&segment.table, segment.rows[0], &before);
    rlr_walk_counters(&next.table, next.rows[0], &after);
    assert_memory_equal(&before, &after, sizeof(before));
    for (uint64_t key = 0; key < 300; key++) {
        rlr_window_decision_t old = segment_peek(&segment, key, get_limit(key))
                                        .window;
        rlr_window_decision_t new = segment_peek(&next, key, get_limit(key))
                                        .window;

        assert_int_equal(old.admitted, new.admitted);
        assert_int_equal(old.remaining, new.remaining);
        assert_int_equal(old.wait_ms, new.wait_ms);
        assert_int_equal(old.reset_ms, new.reset_ms);
    }
    segment_drop(&segment);
    segment_drop(&next);
}

static void a_smaller_table_admits_no_more_than_the_old_one(void **state)
{
    segment_t segment;
    segment_t next;
    uint32_t keys[3];
    uint32_t with_slot = 0;

    segment_make(&segment, 512, 7);
    fill_some(&segment, 350);
    make_next(&next, &segment, 64);
    assert_int_equal(
        rlr_carry_over(&next.table, &segment.table, &segment.clock),
        RLR_TABLE_OK);
    assert_true(rlr_walk_live_keys(&next.table, keys, 3, &next.clock) > 50);
    for (uint64_t key = 0; key < 350; key++) {
        rlr_window_decision_t old = segment_peek(&segment, key, get_limit(key))
                                        .window;
        rlr_table_decision_t new = segment_peek(&next, key, get_limit(key));

        assert_true(new.window.remaining <= old.remaining);
        with_slot += !new.overflow;
    }
    assert_in_range(with_slot, 51, 64);
    segment_drop(&segment);
    segment_drop(&next);
}

static void overflow_windows_are_carried_over(void **state)
{
    segment_t segment;
    segment_t next;

    segment_make(&segment, 16, 8);
    for (uint64_t key = 0; key < 10000; key++) {
        segment_admit(&segment, key, five);
    }
    make_next(&next, &segment, 4096);
    assert_int_equal(
        rlr_carry_over(&next.table, &segment.table, &segment.clock),
        RLR_TABLE_OK);
    for (uint64_t key = 0; key < 10000; key++) {
        bool before = segment_peek(&segment, key, five).window.admitted;
        bool after = segment_peek(&next, key, five).window.admitted;

        assert_int_equal(before, after);
    }
    segment_drop(&segment);
    segment_drop(&next);
}

static void rows_without_a_counterpart_are_not_carried_over(void **state)
{
    static const char *const names[] = {"us/first/api", "us/new/api"};
    uint64_t key = 1;
    uint32_t rules[2];
    uint32_t keys[3];
    rlr_table_request_t request;
    segment_t segment;
    segment_t next;

    segment_make(&segment, 64, 9);
    for (uint32_t rule = 0; rule < 3; rule++) {
        rlr_table_decision_t decision;

        request = segment_request(&segment, &key, five);
        request.row = segment.rows[rule];
        rlr_table_admit(&segment.table, &request, &segment.clock, &decision);
    }
    memset(&next, 0, sizeof(next));
    next.size = rlr_segment_size(64, 2);
    next.memory = segment_map(next.size);
    next.clock = segment.clock;
    assert_int_equal(rlr_segment_create(next.memory, next.size, 64, 2,
                                        rlr_segment_secret(&segment.table)),
                     RLR_TABLE_OK);
    assert_int_equal(rlr_segment_attach(&next.table, next.memory, next.size,
                                        names, 2, rules),
                     RLR_TABLE_OK);
    assert_int_equal(
        rlr_carry_over(&next.table, &segment.table, &segment.clock),
        RLR_TABLE_OK);
    assert_int_equal(rlr_walk_live_keys(&next.table, keys, 2, &segment.clock),
                     1);
    assert_int_equal(keys[rules[0]], 1);
    segment_drop(&segment);
    segment_drop(&next);
}

static void tables_with_different_secrets_are_refused(void **state)
{
    segment_t segment;
    segment_t other;

    segment_make(&segment, 64, 10);
    segment_make(&other, 64, 11);
    assert_int_equal(
        rlr_carry_over(&other.table, &segment.table, &segment.clock),
        RLR_TABLE_SECRETS_DIFFER);
    segment_drop(&segment);
    segment_drop(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(windows_and_counters_persist_over_a_restart),
        CHECK_TEST(a_larger_limit_admits_the_difference_to_the_old_one),
        CHECK_TEST(a_smaller_limit_refuses_until_enough_expired),
        CHECK_TEST(the_newer_limit_applies_to_children_of_both),
        CHECK_TEST(a_slot_claimed_by_older_children_keeps_a_larger_count),
        CHECK_TEST(a_slot_claimed_by_older_children_keeps_a_longer_interval),
        CHECK_TEST(older_children_claim_slots_for_counts_within_their_limit),
        CHECK_TEST(a_limit_may_change_repeatedly),
        CHECK_TEST(windows_and_counters_are_carried_to_a_larger_table),
        CHECK_TEST(a_smaller_table_admits_no_more_than_the_old_one),
        CHECK_TEST(overflow_windows_are_carried_over),
        CHECK_TEST(rows_without_a_counterpart_are_not_carried_over),
        CHECK_TEST(tables_with_different_secrets_are_refused)};

    return CHECK_RUN(tests);
}
