/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* The share of an address in the table, and the counter of its further keys.
 * Covers repair.c. */
#include "check.h"

#include "../../mod_ratelimit_regional/counter/carry.h"

#include "ratelimit_share.h"

#define SLOTS 1024U
/* The share of an address. */
#define SHARE (SLOTS / 16)

static const rlr_limit_t five = {5, 10};
static const rlr_limit_t hour = {5, 3600};

/* Results of keys with one request each. */
typedef struct spray_t {
    uint32_t with_slot;    /* got a slot */
    uint32_t without_slot; /* admitted without one */
} spray_t;

/* One request for each key, sent by `holder`. */
static spray_t spray(segment_t *segment, uint64_t holder, uint64_t first,
                     uint64_t count, rlr_limit_t limit)
{
    spray_t result = {0, 0};

    segment->holder = holder;
    for (uint64_t key = first; key < first + count; key++) {
        rlr_table_decision_t decision = segment_admit(segment, key, limit);

        result.with_slot += !decision.overflow;
        result.without_slot += decision.overflow && decision.window.admitted;
    }
    return result;
}

static void finish(segment_t *segment)
{
    assert_int_equal(segment_excess(&segment->table), 0);
    segment_drop(segment);
}

static void an_address_gets_at_most_a_sixteenth_of_the_slots(void **state)
{
    rlr_table_decision_t decision;
    segment_t segment;
    spray_t result;

    segment_make(&segment, SLOTS, 1);
    result = spray(&segment, 1, 1000, 10000, five);
    assert_int_equal(result.with_slot, SHARE);
    assert_int_equal(result.without_slot, 5);
    decision = segment_admit(&segment, 999, five);
    assert_true(decision.overflow && decision.at_share);
    assert_false(decision.window.admitted);
    /* Another address is not affected. */
    result = spray(&segment, 2, 50000, SHARE, five);
    assert_int_equal(result.with_slot, SHARE);
    finish(&segment);
}

/* One request of `holder` for a key that needs a slot. */
static rlr_table_decision_t admit_with_slot(segment_t *segment, uint64_t holder)
{
    uint64_t key = 99999;
    rlr_table_decision_t decision;
    rlr_table_request_t request;

    segment->holder = holder;
    request = segment_request(segment, &key, five);
    request.needs_slot = true;
    rlr_table_admit(&segment->table, &request, &segment->clock, &decision);
    return decision;
}

static void a_key_that_needs_a_slot_is_refused_without_one(void **state)
{
    rlr_table_decision_t decision;
    segment_t segment;

    segment_make(&segment, SLOTS, 5);
    spray(&segment, 1, 1000, SHARE, five);
    decision = admit_with_slot(&segment, 1);
    assert_false(decision.window.admitted);
    assert_true(decision.overflow && decision.at_share);
    assert_int_equal(decision.window.wait_ms, 1000);
    decision = admit_with_slot(&segment, 2);
    assert_true(decision.window.admitted);
    assert_false(decision.overflow);
    finish(&segment);
}

/* Holds slots for as many keys as the share, from the first one on; returns how
 * many have one. */
static uint32_t hold(segment_t *segment, uint64_t first)
{
    uint32_t held = 0;

    for (uint64_t key = first; key < first + SHARE; key++) {
        rlr_table_request_t request = segment_request(segment, &key, five);
        rlr_table_decision_t decision;
        bool is_held = rlr_table_hold(&segment->table, &request,
                                      &segment->clock, &decision);

        assert_true(is_held || (decision.overflow && decision.at_share));
        held += is_held;
    }
    return held;
}

static void a_held_key_has_a_slot_for_an_interval(void **state)
{
    segment_t segment;

    segment_make(&segment, SLOTS, 6);
    segment.holder = 1;
    assert_int_equal(hold(&segment, 0), SHARE);
    assert_int_equal(hold(&segment, 0), SHARE);
    assert_int_equal(hold(&segment, SHARE), 0);
    /* Without a charge to a shared counter. */
    assert_int_equal(segment_peek(&segment, SHARE, five).window.remaining, 5);
    segment.time.us += 11 * 1000000ULL;
    assert_int_equal(hold(&segment, SHARE), SHARE);
    finish(&segment);
}

static void keys_beyond_the_share_are_counted_per_rule_and_address(void **state)
{
    rlr_table_decision_t decision;
    rlr_table_request_t request;
    segment_t segment;
    uint64_t key = 99999;

    segment_make(&segment, SLOTS, 2);
    spray(&segment, 1, 1000, 1000, five);
    request = segment_request(&segment, &key, five);
    request.row = segment.rows[1];
    rlr_table_admit(&segment.table, &request, &segment.clock, &decision);
    assert_true(decision.overflow);
    assert_int_equal(decision.window.remaining, 4);
    spray(&segment, 2, 5000, 1000, five);
    /* Both have used up the counter of the first rule. */
    assert_false(segment_admit(&segment, 100000, five).window.admitted);
    finish(&segment);
}

/* Each admission of keys without a slot is logged. */
static void a_shared_counter_admits_no_more_than_the_limit(void **state)
{
    sim_log_t log;
    segment_t segment;
    uint64_t seed = 9;

    segment_make(&segment, 64, 3);
    sim_log_make(&log, 64);
    spray(&segment, 1, 0, 4, hour);
    for (uint64_t key = 100; key < 20000; key++) {
        rlr_table_decision_t decision = segment_admit(&segment, key, five);
        uint64_t now = segment.time.us;

        assert_true(decision.overflow);
        if (decision.window.admitted) {
            assert_true(log.total < five.count
                        || now - sim_log_at(&log, five.count - 1) >= 10000000);
            sim_log_add(&log, now);
        }
        segment.time.us += sim_random(&seed) % 200000;
    }
    assert_true(log.total > 900);
    sim_log_drop(&log);
    finish(&segment);
}

static void a_key_that_gets_a_slot_keeps_the_count_of_the_shared_counter(
    void **state)
{
    rlr_table_decision_t decision;
    segment_t segment;

    segment_make(&segment, SLOTS, 4);
    spray(&segment, 1, 1000, SHARE, five);
    segment.time.us += 5000000;
    for (int i = 0; i < 3; i++) {
        assert_true(segment_admit(&segment, 7, five).overflow);
    }
    segment.time.us += 5500000;
    /* The keys of the share are dead, the three are live. */
    decision = segment_admit(&segment, 7, five);
    for (int i = 0; decision.overflow && i < 1000; i++) {
        decision = segment_admit(&segment, 7, (rlr_limit_t){1, 10});
        assert_false(decision.window.admitted);
    }
    assert_false(decision.overflow);
    assert_true(segment_peek(&segment, 7, five).window.remaining <= 1);
    finish(&segment);
}

static void slots_of_dead_keys_are_reclaimed_for_new_ones(void **state)
{
    segment_t segment;
    spray_t result;

    segment_make(&segment, SLOTS, 5);
    for (uint64_t round = 0; round < 50; round++) {
        result = spray(&segment, 1, round * 1000, 2 * (uint64_t)SHARE, five);
        /* Each key searches eight of the 128 sets. */
        assert_in_range(result.with_slot, SHARE - 16, 2 * SHARE);
        assert_null(rlr_walk_validate(&segment.table, &segment.clock));
        segment.time.us += 11000000;
    }
    finish(&segment);
}

/* All keys return: those whose slots were reclaimed are new. */
static void returning_keys_do_not_exceed_the_share(void **state)
{
    uint32_t keys[3];
    segment_t segment;

    segment_make(&segment, SLOTS, 6);
    for (uint64_t round = 0; round < 10; round++) {
        spray(&segment, 1, round * SHARE, SHARE, five);
        segment.time.us += 11000000;
    }
    spray(&segment, 1, 0, 10 * (uint64_t)SHARE, five);
    assert_true(rlr_walk_live_keys(&segment.table, keys, 3, &segment.clock)
                <= SHARE + 1);
    finish(&segment);
}

static void long_intervals_leave_slots_for_short_ones(void **state)
{
    uint32_t keys[3];
    uint32_t with_slot = 0;
    segment_t segment;

    segment_make(&segment, SLOTS, 7);
    for (uint64_t holder = 1; holder <= 40; holder++) {
        spray(&segment, holder, holder * 1000, 100, hour);
    }
    assert_in_range(rlr_walk_live_keys(&segment.table, keys, 3, &segment.clock),
                    SLOTS / 8 * 5, SLOTS / 8 * 5 + 40);
    for (uint64_t holder = 100; holder < 164; holder++) {
        with_slot += spray(&segment, holder, holder * 1000, 1,
                           (rlr_limit_t){5, 60})
                         .with_slot;
    }
    assert_int_equal(with_slot, 64);
    finish(&segment);
}

static void in_a_full_table_each_address_has_its_own_counters(void **state)
{
    segment_t segment;

    segment_make(&segment, SLOTS, 8);
    for (uint64_t holder = 1; holder <= 40; holder++) {
        spray(&segment, holder, holder * 1000, 100, hour);
    }
    for (uint64_t holder = 100; holder < 140; holder++) {
        spray_t result = spray(&segment, holder, holder * 1000, 10, hour);

        assert_int_equal(result.with_slot, 0);
        assert_int_equal(result.without_slot, 5);
        assert_false(segment_admit(&segment, 1, hour).at_share);
    }
    finish(&segment);
}

/* More addresses than the table has slots for their counters. */
static void addresses_without_counters_share_the_overflow_windows(void **state)
{
    uint32_t admitted = 0;
    segment_t segment;

    segment_make(&segment, 64, 9);
    for (uint64_t holder = 1; holder <= 1000; holder++) {
        spray_t result = spray(&segment, holder, holder * 10, 10, five);

        admitted += result.with_slot + result.without_slot;
    }
    /* 64 slots and 16 windows, of five admissions each at most. */
    assert_in_range(admitted, 64, (64 + 16) * 5);
    finish(&segment);
}

static void a_reset_key_keeps_its_slot_and_is_counted(void **state)
{
    uint64_t key = 1000;
    rlr_table_request_t request;
    segment_t segment;

    segment_make(&segment, SLOTS, 10);
    spray(&segment, 1, 1000, SHARE, hour);
    request = segment_request(&segment, &key, hour);
    assert_true(rlr_table_reset(&segment.table, &request, &segment.clock));
    assert_int_equal(segment_excess(&segment.table), 0);
    /* It is dead now, and its slot is reclaimed for another key. */
    assert_int_equal(spray(&segment, 1, 5000, 100, hour).with_slot, 1);
    finish(&segment);
}

static void a_peek_claims_no_slot(void **state)
{
    segment_t segment;

    segment_make(&segment, SLOTS, 11);
    segment.holder = 1;
    for (uint64_t key = 0; key < 1000; key++) {
        assert_int_equal(segment_peek(&segment, key, five).window.remaining, 5);
    }
    assert_int_equal(spray(&segment, 1, 0, SHARE, five).with_slot, SHARE);
    assert_true(segment_peek(&segment, 5000, five).window.admitted);
    spray(&segment, 1, 5000, 5, five);
    assert_false(segment_peek(&segment, 6000, five).window.admitted);
    finish(&segment);
}

/* Counters that are too high after deaths. */
static void damage(segment_t *segment)
{
    uint32_t slots = rlr_walk_slots(&segment->table);

    for (uint32_t i = 0; i < slots; i += 7) {
        segment->table.shares[i] += 3;
    }
    rlr_repair_state_request(&segment->table);
}

static void wrong_counters_are_repaired(void **state)
{
    segment_t segment;

    segment_make(&segment, SLOTS, 12);
    for (uint64_t holder = 1; holder <= 5; holder++) {
        spray(&segment, holder, holder * 1000, 20 * holder, five);
    }
    damage(&segment);
    spray(&segment, 6, 90000, 8, five);
    assert_int_equal(segment_excess(&segment.table), 0);
    assert_false(rlr_repair_state_is_pending(&segment.table));
    finish(&segment);
}

/* The progress of the repair, in units of work. */
static uint64_t get_progress(const segment_t *segment)
{
    const rlr_segment_t *header = segment->table.segment;
    uint64_t slots = rlr_walk_slots(&segment->table);

    switch ((rlr_repair_phase_t)header->repair) {
    case RLR_REPAIR_RESET:
        return header->phase_done;
    case RLR_REPAIR_CLEAR:
        return RLR_SET_LOCKS + header->phase_done;
    case RLR_REPAIR_COUNT:
        return RLR_SET_LOCKS + slots + (uint64_t)header->phase_done * RLR_WAYS;
    case RLR_REPAIR_APPLY:
        return RLR_SET_LOCKS + 2 * slots + header->phase_done;
    case RLR_REPAIR_NONE:
        return RLR_SET_LOCKS + 3 * slots;
    case RLR_REPAIR_DUE:
    default:
        return 0;
    }
}

/* Each new key repairs a part that does not grow with the table; known keys
 * repair nothing. */
static void a_repair_delays_no_request(void **state)
{
    uint64_t progress = 0;
    uint64_t keys = 0;
    segment_t segment;

    segment_make(&segment, 65536, 14);
    spray(&segment, 1, 1000, 3000, five);
    damage(&segment);
    segment.holder = 2;
    while (rlr_repair_state_is_pending(&segment.table)) {
        uint64_t last = progress;

        assert_true(
            segment_admit(&segment, 50000 + keys, five).window.admitted);
        progress = get_progress(&segment);
        assert_in_range(progress - last, 1, RLR_REPAIR_WORK + 8);
        assert_true(segment_admit(&segment, 1000 + keys, five).window.admitted);
        assert_int_equal(get_progress(&segment), progress);
        keys++;
    }
    assert_in_range(keys, 3 * 65536 / RLR_REPAIR_WORK,
                    3 * 65536 / RLR_REPAIR_WORK + 4);
    finish(&segment);
}

/* Slots change owners in counted and uncounted sets, and another process dies
 * in between. */
static void a_repair_counts_slots_that_change_owners(void **state)
{
    uint64_t seed = 15;
    uint64_t keys = 0;
    segment_t segment;

    segment_make(&segment, 8192, 15);
    for (int round = 0; round < 20; round++) {
        damage(&segment);
        while (rlr_repair_state_is_pending(&segment.table)) {
            for (int i = 0; i < 20; i++) {
                spray(&segment, 1 + sim_random(&seed) % 12,
                      sim_random(&seed) % 20000, 20, five);
            }
            if (++keys % 40 == 0) {
                rlr_repair_state_request(&segment.table);
            }
            segment.time.us += sim_random(&seed) % 4000000;
        }
        assert_int_equal(segment_excess(&segment.table), 0);
        assert_int_equal(segment_least_excess(&segment.table), 0);
        assert_null(rlr_walk_validate(&segment.table, &segment.clock));
    }
    finish(&segment);
}

static void shares_are_carried_to_a_table_of_another_size(void **state)
{
    static const uint32_t sizes[] = {4 * SLOTS, SLOTS / 4};

    for (int i = 0; i < 2; i++) {
        segment_t segment;
        segment_t next;
        uint32_t admitted = 0;

        segment_make(&segment, SLOTS, 13);
        spray(&segment, 1, 0, 2 * (uint64_t)SHARE, hour);
        segment_make_with(&next, sizes[i], rlr_segment_secret(&segment.table));
        next.time = segment.time;
        assert_int_equal(
            rlr_carry_over(&next.table, &segment.table, &segment.clock),
            RLR_TABLE_OK);
        assert_int_equal(segment_excess(&next.table), 0);
        next.holder = 1;
        /* Keys with a slot and shared counters are charged. */
        for (uint64_t key = 0; key < SHARE; key++) {
            assert_true(segment_peek(&next, key, hour).window.remaining <= 4);
        }
        for (uint64_t key = SHARE; key < 2 * SHARE; key++) {
            admitted += segment_admit(&next, key, hour).window.admitted;
        }
        assert_int_equal(admitted, 0);
        finish(&segment);
        finish(&next);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(an_address_gets_at_most_a_sixteenth_of_the_slots),
        CHECK_TEST(a_key_that_needs_a_slot_is_refused_without_one),
        CHECK_TEST(a_held_key_has_a_slot_for_an_interval),
        CHECK_TEST(keys_beyond_the_share_are_counted_per_rule_and_address),
        CHECK_TEST(a_shared_counter_admits_no_more_than_the_limit),
        CHECK_TEST(
            a_key_that_gets_a_slot_keeps_the_count_of_the_shared_counter),
        CHECK_TEST(slots_of_dead_keys_are_reclaimed_for_new_ones),
        CHECK_TEST(returning_keys_do_not_exceed_the_share),
        CHECK_TEST(long_intervals_leave_slots_for_short_ones),
        CHECK_TEST(in_a_full_table_each_address_has_its_own_counters),
        CHECK_TEST(addresses_without_counters_share_the_overflow_windows),
        CHECK_TEST(a_reset_key_keeps_its_slot_and_is_counted),
        CHECK_TEST(a_peek_claims_no_slot),
        CHECK_TEST(wrong_counters_are_repaired),
        CHECK_TEST(a_repair_delays_no_request),
        CHECK_TEST(a_repair_counts_slots_that_change_owners),
        CHECK_TEST(shares_are_carried_to_a_table_of_another_size)};

    return CHECK_RUN(tests);
}
