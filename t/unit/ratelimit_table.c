/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* The table: its keys, its bounds, counters and resets. */
#include "check.h"

#include "ratelimit_segment.h"

static const rlr_limit_t five = {5, 10};

static void sizes_and_arguments_are_checked(void **state)
{
    static const unsigned char secret[RLR_TABLE_SECRET_SIZE];
    size_t size = rlr_segment_size(1000, 4);
    unsigned char *memory = segment_map(size + 64);

    assert_int_equal(rlr_segment_size(1000, 0), 0);
    assert_int_equal(rlr_segment_size(1000, RLR_TABLE_ROWS_MAX + 1), 0);
    assert_int_equal(rlr_segment_size(RLR_TABLE_SLOTS_MAX + 1, 4), 0);
    assert_true(rlr_segment_size(RLR_TABLE_SLOTS_MAX, 4) > 5000000000U);
    assert_int_equal(rlr_segment_size(0, 4),
                     rlr_segment_size(RLR_TABLE_SLOTS_MIN, 4));
    assert_int_equal(rlr_segment_size(993, 4), size);
    assert_int_equal(rlr_segment_create(memory, size - 1, 1000, 4, secret),
                     RLR_TABLE_TOO_SMALL);
    assert_int_equal(rlr_segment_create(memory + 8, size, 1000, 4, secret),
                     RLR_TABLE_INVALID);
    assert_int_equal(rlr_segment_create(memory, size, 1000, 0, secret),
                     RLR_TABLE_INVALID);
    munmap(memory, size + 64);
}

static void a_default_table_needs_the_documented_memory(void **state)
{
    /* 65536 slots: 20 MiB of windows, 0.5 MiB of tags, 0.5 MiB of shares. */
    size_t bare = 65536 * (320 + 8 + 8);
    size_t size = rlr_segment_size(65536, 64);

    assert_in_range(size, bare, bare + 600 * 1024);
}

static void memory_without_a_segment_is_not_attached(void **state)
{
    segment_t segment;
    rlr_table_t table;
    uint32_t slot;

    segment_make(&segment, 64, 1);
    assert_int_equal(rlr_segment_attach(&table, segment.memory,
                                        segment.size - 1, segment_rows, 1,
                                        &slot),
                     RLR_TABLE_INVALID);
    for (size_t i = 0; i < 24; i++) {
        unsigned char *byte = (unsigned char *)segment.memory + i;

        /* Neither the number of attachments nor the spare bytes. */
        *byte ^= 0x40;
        if (i < 20) {
            assert_int_equal(rlr_segment_attach(&table, segment.memory,
                                                segment.size, segment_rows, 1,
                                                &slot),
                             RLR_TABLE_INVALID);
        }
        *byte ^= 0x40;
    }
    segment_drop(&segment);
}

static void a_row_is_found_by_its_name(void **state)
{
    static const char *const other_order[] = {"eu/first/api", "us/first/api",
                                              "eu/first/api"};
    static const char *const too_many[] = {"new"};
    rlr_table_t table;
    uint32_t slots[3];
    segment_t segment;

    segment_make(&segment, 64, 1);
    assert_int_equal(rlr_segment_attach(&table, segment.memory, segment.size,
                                        other_order, 3, slots),
                     RLR_TABLE_OK);
    assert_int_equal(slots[0], segment.rows[2]);
    assert_int_equal(slots[1], segment.rows[0]);
    assert_int_equal(slots[2], segment.rows[2]);
    assert_int_equal(rlr_segment_attach(&table, segment.memory, segment.size,
                                        too_many, 1, slots),
                     RLR_TABLE_ROWS_FULL);
    segment_drop(&segment);
}

static void each_key_of_each_rule_has_its_own_counter(void **state)
{
    segment_t segment;

    segment_make(&segment, 1024, 2);
    for (uint32_t rule = 0; rule < 3; rule++) {
        for (uint64_t key = 0; key < 100; key++) {
            rlr_table_request_t request = segment_request(&segment, &key, five);
            rlr_table_decision_t decision;

            request.row = segment.rows[rule];
            for (uint32_t i = 0; i < 5; i++) {
                rlr_table_admit(&segment.table, &request, &segment.clock,
                                &decision);
                assert_true(decision.window.admitted);
                assert_int_equal(decision.window.remaining, 4 - i);
                assert_false(decision.overflow);
            }
            rlr_table_admit(&segment.table, &request, &segment.clock,
                            &decision);
            assert_false(decision.window.admitted);
        }
    }
    segment_drop(&segment);
}

static void identities_differ_by_every_byte_and_by_length(void **state)
{
    static const char *const identities[] = {"a", "b", "ab", "ba", "aa", ""};
    rlr_table_decision_t decision;
    segment_t segment;

    segment_make(&segment, 1024, 3);
    for (size_t i = 0; i < 6; i++) {
        rlr_table_request_t request = segment_request(&segment, NULL, five);

        request.identity = identities[i];
        request.identity_length = strlen(identities[i]);
        rlr_table_admit(&segment.table, &request, &segment.clock, &decision);
        assert_int_equal(decision.window.remaining, 4);
    }
    segment_drop(&segment);
}

static void identities_are_not_stored(void **state)
{
    static const char identity[] = "lsv2_pt_0123456789abcdef0123456789abcdef";
    rlr_table_decision_t decision;
    segment_t segment;
    rlr_table_request_t request;

    segment_make(&segment, 64, 4);
    request = segment_request(&segment, NULL, five);
    request.identity = identity;
    request.identity_length = sizeof(identity) - 1;
    rlr_table_admit(&segment.table, &request, &segment.clock, &decision);
    for (size_t i = 0; i + 8 <= sizeof(identity) - 1; i++) {
        assert_null(memmem(segment.memory, segment.size, identity + i, 8));
    }
    segment_drop(&segment);
}

static void a_peek_charges_nothing(void **state)
{
    rlr_table_decision_t decision;
    rlr_counters_t counters;
    segment_t segment;

    segment_make(&segment, 64, 5);
    for (int i = 0; i < 3; i++) {
        decision = segment_peek(&segment, 7, five);
        assert_true(decision.window.admitted);
        assert_int_equal(decision.window.remaining, 5);
        assert_int_equal(decision.window.reset_ms, 0);
        assert_false(decision.overflow);
    }
    for (int i = 0; i < 5; i++) {
        segment_admit(&segment, 7, five);
    }
    decision = segment_peek(&segment, 7, five);
    assert_false(decision.window.admitted);
    assert_int_equal(decision.window.wait_ms, 10000);
    assert_false(decision.first_refusal);
    rlr_walk_counters(&segment.table, segment.rows[0], &counters);
    assert_int_equal(counters.admitted, 5);
    assert_int_equal(counters.refused, 0);
    segment_drop(&segment);
}

static void outcomes_are_counted_per_rule(void **state)
{
    rlr_table_decision_t decision;
    rlr_counters_t counters;
    segment_t segment;

    segment_make(&segment, 64, 6);
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t key = 1;
        rlr_table_request_t request = segment_request(&segment, &key, five);

        request.dry_run = i >= 12;
        rlr_table_admit(&segment.table, &request, &segment.clock, &decision);
    }
    rlr_walk_counters(&segment.table, segment.rows[0], &counters);
    assert_int_equal(counters.admitted, 5);
    assert_int_equal(counters.refused, 7);
    assert_int_equal(counters.would_refuse, 8);
    assert_int_equal(counters.overflow, 0);
    rlr_walk_counters(&segment.table, segment.rows[1], &counters);
    assert_int_equal(counters.admitted, 0);
    rlr_walk_counters(&segment.table, RLR_TABLE_ROWS_MAX + 5, &counters);
    assert_int_equal(counters.admitted, 0);
    segment_drop(&segment);
}

static void the_first_refusal_of_a_key_and_interval_is_marked(void **state)
{
    segment_t segment;
    int marked = 0;

    segment_make(&segment, 64, 7);
    /* 100 seconds, one request each 10 ms: refused from the sixth. */
    for (int i = 0; i < 10000; i++) {
        rlr_table_decision_t decision = segment_admit(&segment, 1, five);

        assert_false(decision.first_refusal && decision.window.admitted);
        marked += decision.first_refusal;
        segment.time.us += 10000;
    }
    assert_int_equal(marked, 10);
    segment_drop(&segment);
}

static void of_two_refusals_out_of_order_one_is_marked(void **state)
{
    segment_t segment;

    segment_make(&segment, 64, 7);
    for (int i = 0; i < 5; i++) {
        segment_admit(&segment, 1, five);
    }
    segment.time.us += 2000;
    assert_true(segment_admit(&segment, 1, five).first_refusal);
    segment.time.us -= 1000;
    assert_false(segment_admit(&segment, 1, five).first_refusal);
    segment_drop(&segment);
}

static void a_reset_empties_the_window_of_one_key(void **state)
{
    uint64_t key = 1;
    rlr_table_request_t request;
    segment_t segment;

    segment_make(&segment, 64, 8);
    request = segment_request(&segment, &key, five);
    assert_false(rlr_table_reset(&segment.table, &request, &segment.clock));
    for (int i = 0; i < 6; i++) {
        segment_admit(&segment, 1, five);
        segment_admit(&segment, 2, five);
    }
    assert_true(rlr_table_reset(&segment.table, &request, &segment.clock));
    assert_int_equal(segment_admit(&segment, 1, five).window.remaining, 4);
    assert_false(segment_admit(&segment, 2, five).window.admitted);
    for (int i = 0; i < 4; i++) {
        segment_admit(&segment, 1, five);
    }
    assert_true(segment_admit(&segment, 1, five).first_refusal);
    segment_drop(&segment);
}

static void an_undecidable_request_is_refused(void **state)
{
    static const rlr_limit_t bad[] = {{0, 10},
                                      {5, 0},
                                      {RLR_LIMIT_COUNT_MAX + 1, 10},
                                      {5, RLR_LIMIT_INTERVAL_SEC_MAX + 1}};
    uint64_t key = 1;
    rlr_table_decision_t decision;
    rlr_table_request_t request;
    segment_t segment;

    segment_make(&segment, 64, 10);
    for (size_t i = 0; i < 4; i++) {
        assert_false(segment_admit(&segment, 1, bad[i]).window.admitted);
        decision = segment_peek(&segment, 1, bad[i]);
        assert_false(decision.window.admitted);
        assert_int_equal(decision.window.wait_ms, 1000);
    }
    request = segment_request(&segment, &key, five);
    request.row = 3;
    rlr_table_admit(&segment.table, &request, &segment.clock, &decision);
    assert_false(decision.window.admitted);
    assert_false(rlr_table_knows(&segment.table, &request));
    assert_false(rlr_table_reset(&segment.table, &request, &segment.clock));
    segment_drop(&segment);
}

static void live_keys_are_counted_per_rule(void **state)
{
    uint32_t keys[3];
    segment_t segment;

    segment_make(&segment, 1024, 11);
    for (uint64_t key = 0; key < 90; key++) {
        rlr_table_request_t request = segment_request(&segment, &key, five);
        rlr_table_decision_t decision;

        request.row = segment.rows[key % 3 == 0 ? 2 : 0];
        rlr_table_admit(&segment.table, &request, &segment.clock, &decision);
        segment.time.us += 100000;
    }
    assert_int_equal(
        rlr_walk_live_keys(&segment.table, keys, 3, &segment.clock), 90);
    assert_int_equal(rlr_walk_slots(&segment.table), 1024);
    assert_int_equal(keys[segment.rows[0]], 60);
    assert_int_equal(keys[segment.rows[1]], 0);
    assert_int_equal(keys[segment.rows[2]], 30);
    segment.time.us += 4000000;
    assert_int_equal(
        rlr_walk_live_keys(&segment.table, keys, 3, &segment.clock), 59);
    segment.time.us += 10000000;
    assert_int_equal(
        rlr_walk_live_keys(&segment.table, keys, 1, &segment.clock), 0);
    segment_drop(&segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(sizes_and_arguments_are_checked),
        CHECK_TEST(a_default_table_needs_the_documented_memory),
        CHECK_TEST(memory_without_a_segment_is_not_attached),
        CHECK_TEST(a_row_is_found_by_its_name),
        CHECK_TEST(each_key_of_each_rule_has_its_own_counter),
        CHECK_TEST(identities_differ_by_every_byte_and_by_length),
        CHECK_TEST(identities_are_not_stored),
        CHECK_TEST(a_peek_charges_nothing),
        CHECK_TEST(outcomes_are_counted_per_rule),
        CHECK_TEST(the_first_refusal_of_a_key_and_interval_is_marked),
        CHECK_TEST(of_two_refusals_out_of_order_one_is_marked),
        CHECK_TEST(a_reset_empties_the_window_of_one_key),
        CHECK_TEST(an_undecidable_request_is_refused),
        CHECK_TEST(live_keys_are_counted_per_rule)};

    return CHECK_RUN(tests);
}
