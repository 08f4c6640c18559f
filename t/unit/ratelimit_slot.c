/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* A table that fills up: the load it carries, reused slots, overflow windows,
 * and no key above its limit. */
#include "check.h"

#include "ratelimit_segment.h"

static const rlr_limit_t five = {5, 10};

static void seven_tenths_of_the_slots_can_be_used(void **state)
{
    uint32_t slots = 65536;
    int tables = (int)(8 * sim_effort_alone()) + 1;

    for (int i = 0; i < tables; i++) {
        segment_t segment;
        uint32_t keys[3];

        segment_make(&segment, slots, (unsigned char)i);
        for (uint64_t key = 0; key < slots * 7ULL / 10; key++) {
            rlr_table_decision_t decision = segment_admit(&segment, key, five);

            assert_false(decision.overflow);
            assert_int_equal(decision.window.remaining, 4);
        }
        assert_int_equal(
            rlr_walk_live_keys(&segment.table, keys, 3, &segment.clock),
            slots * 7ULL / 10);
        segment_drop(&segment);
    }
}

/* Ten times as many keys as slots, each live for ten seconds. */
static void slots_are_reused_at_a_steady_load_of_seven_tenths(void **state)
{
    uint32_t slots = 16384;
    uint64_t live = slots * 7ULL / 10;
    rlr_counters_t counters;
    segment_t segment;

    segment_make(&segment, slots, 1);
    for (uint64_t key = 0; key < slots * 10ULL; key++) {
        rlr_table_decision_t decision = segment_admit(&segment, key, five);

        assert_true(decision.window.admitted);
        segment.time.us += 10000000 / live + 1;
    }
    rlr_walk_counters(&segment.table, segment.rows[0], &counters);
    assert_int_equal(counters.overflow, 0);
    segment_drop(&segment);
}

static void a_live_key_is_never_evicted(void **state)
{
    static const rlr_limit_t one_an_hour = {1, 3600};
    bool with_slot[100] = {false};
    segment_t segment;

    segment_make(&segment, 128, 2);
    for (uint64_t key = 0; key < 100; key++) {
        with_slot[key] = !segment_admit(&segment, key, one_an_hour).overflow;
    }
    for (uint64_t key = 1000; key < 200000; key++) {
        segment_admit(&segment, key, five);
        segment.time.us += 10000;
    }
    for (uint64_t key = 0; key < 100; key++) {
        rlr_table_decision_t decision = segment_admit(&segment, key,
                                                      one_an_hour);

        assert_false(decision.window.admitted);
        assert_int_equal(decision.overflow, !with_slot[key]);
    }
    segment_drop(&segment);
}

/* Far more keys than a small table has slots and overflow windows. */
#define FILL 5000

/* Fills all slots of a small table with live keys of a rule. */
static void fill_by(segment_t *segment, uint32_t rule, rlr_limit_t limit)
{
    uint32_t keys[3];

    for (uint64_t key = 0; key < FILL; key++) {
        rlr_table_request_t request = segment_request(segment, &key, limit);
        rlr_table_decision_t decision;

        request.row = rule;
        rlr_table_admit(&segment->table, &request, &segment->clock, &decision);
    }
    assert_int_equal(
        rlr_walk_live_keys(&segment->table, keys, 3, &segment->clock),
        rlr_walk_slots(&segment->table));
}

static void fill(segment_t *segment, rlr_limit_t limit)
{
    fill_by(segment, segment->rows[0], limit);
}

static void keys_without_a_slot_share_the_overflow_of_their_rule(void **state)
{
    static const rlr_limit_t minute = {5, 60};
    uint32_t admitted = 0;
    rlr_counters_t counters;
    segment_t segment;

    segment_make(&segment, 16, 3);
    fill(&segment, minute);
    segment.time.us += 61000000;
    fill(&segment, minute);
    for (uint64_t key = 200000; key < 201000; key++) {
        rlr_table_decision_t decision = segment_admit(&segment, key, minute);

        assert_true(decision.overflow);
        admitted += decision.window.admitted;
        assert_true(segment_peek(&segment, key, minute).overflow);
    }
    /* The fill has used up the sixteen windows. */
    assert_int_equal(admitted, 0);
    rlr_walk_counters(&segment.table, segment.rows[0], &counters);
    assert_int_equal(counters.overflow, 2 * (FILL - 16) + 1000);
    /* Two times 16 keys of their own, 16 windows of 5. */
    assert_int_equal(counters.admitted, 2 * (16 + 16 * 5));
    segment_drop(&segment);
}

static void rules_have_separate_overflow_windows(void **state)
{
    uint64_t key = 200000;
    rlr_table_decision_t decision;
    rlr_table_request_t request;
    segment_t segment;

    segment_make(&segment, 16, 4);
    fill(&segment, five);
    assert_false(segment_admit(&segment, key, five).window.admitted);
    request = segment_request(&segment, &key, five);
    request.row = segment.rows[1];
    rlr_table_admit(&segment.table, &request, &segment.clock, &decision);
    assert_true(decision.overflow);
    assert_int_equal(decision.window.remaining, 4);
    assert_false(rlr_table_knows(&segment.table, &request));
    assert_false(rlr_table_reset(&segment.table, &request, &segment.clock));
    segment_drop(&segment);
}

static void a_key_that_gets_a_slot_keeps_its_charges(void **state)
{
    rlr_table_decision_t decision;
    segment_t segment;
    uint64_t key = 500000;

    segment_make(&segment, 16, 5);
    /* Full for ten seconds by one request each, and then full again. */
    fill(&segment, five);
    segment.time.us += 9000000;
    for (uint64_t old = 0; old < FILL; old++) {
        uint64_t known = old;
        rlr_table_request_t request = segment_request(&segment, &known, five);

        if (rlr_table_knows(&segment.table, &request)) {
            segment_admit(&segment, old, five);
        }
    }
    segment.time.us += 2000000;
    /* The overflow windows have expired, the sixteen keys have not. */
    for (int i = 0; i < 5; i++) {
        decision = segment_admit(&segment, key, five);
        assert_true(decision.overflow);
        assert_int_equal(decision.window.remaining, 4 - i);
        segment.time.us += 200000;
    }
    assert_false(segment_admit(&segment, key, five).window.admitted);
    segment.time.us += 7500000;
    /* Slots are free now; the key's five have not expired. */
    decision = segment_peek(&segment, key, five);
    assert_false(decision.window.admitted);
    decision = segment_admit(&segment, key, five);
    assert_false(decision.overflow);
    assert_false(decision.window.admitted);
    segment.time.us += decision.window.wait_ms * 1000ULL;
    assert_true(segment_admit(&segment, key, five).window.admitted);
    segment_drop(&segment);
}

static void keys_with_different_limits_share_an_overflow_window(void **state)
{
    static const rlr_limit_t large = {200, 10};
    static const rlr_limit_t longer = {5, 30};
    segment_t segment;
    uint32_t admitted = 0;

    segment_make(&segment, 16, 6);
    fill(&segment, (rlr_limit_t){1, 40});
    segment.time.us += 39000000;
    for (uint64_t key = 200000; key < 200400; key++) {
        admitted += segment_admit(&segment, key, large).window.admitted;
        assert_false(segment_admit(&segment, key, five).window.remaining > 4);
    }
    assert_true(admitted >= 16 && admitted <= 400);
    /* A longer interval keeps the count for longer. */
    assert_false(segment_admit(&segment, 200001, longer).window.admitted
                 && segment_admit(&segment, 200001, five).window.remaining > 4);
    segment_drop(&segment);
}

/* Only once it is empty; a larger count has less exact times. */
static void an_empty_overflow_window_is_rebuilt_for_the_limit(void **state)
{
    static const rlr_limit_t large = {200, 10};
    rlr_table_decision_t decision = {.overflow = false};
    segment_t segment;

    segment_make(&segment, 16, 8);
    fill_by(&segment, segment.rows[1], (rlr_limit_t){1, 60});
    assert_true(segment_admit(&segment, 200000, large).overflow);
    segment.time.us += 11000000;
    for (int i = 0; i < 6; i++) {
        decision = segment_admit(&segment, 200000, five);
        segment.time.us += 1000000;
    }
    assert_true(decision.overflow);
    assert_false(decision.window.admitted);
    assert_int_equal(decision.window.wait_ms, 5000);
    segment_drop(&segment);
}

/* Keys with a log of every admission. */
#define TRACKED 64

typedef struct tracked_t {
    sim_log_t logs[TRACKED];
    uint32_t counts[TRACKED];
    uint64_t refused;
    uint64_t overflow;
} tracked_t;

static void admit_tracked(segment_t *segment, tracked_t *tracked, uint64_t key,
                          bool exact)
{
    rlr_limit_t limit = {tracked->counts[key], 10};
    rlr_table_decision_t decision = segment_admit(segment, key, limit);
    uint64_t now = segment->time.us;
    sim_log_t *log = &tracked->logs[key];

    tracked->overflow += decision.overflow;
    if (decision.window.admitted) {
        assert_true(log->total < limit.count
                    || now - sim_log_at(log, limit.count - 1) >= 10000000);
        sim_log_add(log, now);
        return;
    }
    tracked->refused++;
    assert_true(decision.window.wait_ms > 0);
    if (exact) {
        assert_true(sim_log_has(log, limit.count, now - 10002000));
    }
}

/* `requests` by random keys in a table for 2048, of which tracked ones recur;
 * `step_us` determines how many are live. */
static void flood(segment_t *segment, tracked_t *tracked, uint64_t requests,
                  uint64_t step_us, bool exact, uint64_t *seed)
{
    static const rlr_limit_t one = {1, 10};

    for (uint64_t i = 0; i < requests; i++) {
        uint64_t random = sim_random(seed);

        segment->time.us += random % (2 * step_us + 1);
        if (random >> 60 == 0) {
            admit_tracked(segment, tracked, (random >> 40) % TRACKED, exact);
        }
        else {
            segment_admit(segment, random | 1ULL << 63, one);
        }
    }
}

static void ten_million_random_keys_exceed_no_limit(void **state)
{
    uint64_t half = (uint64_t)(5000000 * sim_effort_alone());
    uint64_t seed = 4711;
    tracked_t tracked = {.refused = 0};
    rlr_counters_t counters;
    segment_t segment;

    /* A wave must be longer than the table. */
    half = half > 400000 ? half : 400000;
    segment_make(&segment, 2048, 7);
    for (uint32_t i = 0; i < TRACKED; i++) {
        tracked.counts[i] = 1 + i % 20;
        sim_log_make(&tracked.logs[i], 32);
    }
    /* 1250 live keys: all have slots, all decisions are exact. */
    flood(&segment, &tracked, half / 2, 8000, true, &seed);
    assert_int_equal(tracked.overflow, 0);
    assert_null(rlr_walk_validate(&segment.table, &segment.clock));
    /* Ten times the table, in waves, so that slots become free in between. */
    for (int wave = 0; wave < 24; wave++) {
        flood(&segment, &tracked, half / 20, 500, false, &seed);
        flood(&segment, &tracked, half / 60, 20000, false, &seed);
        assert_null(rlr_walk_validate(&segment.table, &segment.clock));
    }
    rlr_walk_counters(&segment.table, segment.rows[0], &counters);
    assert_true(counters.overflow > half / 10);
    assert_true(tracked.overflow > 100);
    assert_true(tracked.refused > 100);
    for (uint32_t i = 0; i < TRACKED; i++) {
        sim_log_drop(&tracked.logs[i]);
    }
    segment_drop(&segment);
}

/* Whether a slot is held for the key. */
static bool hold_key(segment_t *segment, uint64_t key, rlr_limit_t limit)
{
    rlr_table_request_t request = segment_request(segment, &key, limit);
    rlr_table_decision_t decision;

    return rlr_table_hold(&segment->table, &request, &segment->clock,
                          &decision);
}

static void ten_addresses_leave_slots_for_the_first_keys_of_others(void **state)
{
    static const rlr_limit_t hour = {5, 3600};
    segment_t segment;
    uint32_t held = 0;

    segment_make(&segment, 1024, 12);
    for (segment.holder = 1; segment.holder <= 10; segment.holder++) {
        uint64_t first = segment.holder * 10000;

        for (uint64_t key = first; key < first + 2000; key++) {
            hold_key(&segment, key, hour);
        }
    }
    for (; segment.holder <= 70; segment.holder++) {
        held += hold_key(&segment, segment.holder * 10000, hour);
        held += hold_key(&segment, segment.holder * 10000 + 1, hour);
    }
    assert_in_range(held, 119, 120);
    segment_drop(&segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(seven_tenths_of_the_slots_can_be_used),
        CHECK_TEST(slots_are_reused_at_a_steady_load_of_seven_tenths),
        CHECK_TEST(a_live_key_is_never_evicted),
        CHECK_TEST(keys_without_a_slot_share_the_overflow_of_their_rule),
        CHECK_TEST(rules_have_separate_overflow_windows),
        CHECK_TEST(a_key_that_gets_a_slot_keeps_its_charges),
        CHECK_TEST(keys_with_different_limits_share_an_overflow_window),
        CHECK_TEST(an_empty_overflow_window_is_rebuilt_for_the_limit),
        CHECK_TEST(ten_addresses_leave_slots_for_the_first_keys_of_others),
        CHECK_TEST(ten_million_random_keys_exceed_no_limit)};

    return CHECK_RUN(tests);
}
