/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/decision/new_keys.c */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* RateLimitNewIdentities: new keys, and how long keys are known. */
#include "check.h"

#include "../../mod_ratelimit_regional/decision/new_keys.h"
#include "ratelimit_segment.h"

#define MINUTE_US (60 * 1000000ULL)

/* Two new keys in a day. */
static const rlr_limit_t two = {2, 86400};
static const rlr_limit_t hour = {1, 3600};

static bool try_key(segment_t *segment, uint64_t key, uint64_t address,
                    bool dry_run, rlr_table_decide_t *decide)
{
    rlr_table_request_t known = segment_request(segment, &key, two);
    rlr_table_request_t fresh = segment_request(segment, &address, two);

    fresh.row = segment->rows[1];
    fresh.dry_run = dry_run;
    return rlr_new_keys_admit(&segment->table, &known, &fresh, &segment->clock,
                              decide);
}

static bool is_admitted(segment_t *segment, uint64_t key, uint64_t address)
{
    return try_key(segment, key, address, false, rlr_table_admit);
}

/* Other keys claim every free slot. */
static void crowd(segment_t *segment)
{
    for (uint64_t key = 100; key < 400; key++) {
        rlr_table_request_t request = segment_request(segment, &key, hour);
        rlr_table_decision_t decision;

        request.row = segment->rows[2];
        rlr_table_admit(&segment->table, &request, &segment->clock, &decision);
    }
}

static void the_new_keys_of_an_address_are_limited(void **state)
{
    segment_t segment;

    segment_make(&segment, 64, 1);
    for (int round = 0; round < 3; round++) {
        assert_true(is_admitted(&segment, 1, 7));
        assert_true(is_admitted(&segment, 2, 7));
        assert_false(is_admitted(&segment, 3, 7));
    }
    assert_true(is_admitted(&segment, 3, 8));
    assert_true(is_admitted(&segment, 3, 7));
    segment_drop(&segment);
}

static void a_dry_run_admits_every_key(void **state)
{
    segment_t segment;

    segment_make(&segment, 64, 2);
    for (uint64_t key = 1; key < 6; key++) {
        assert_true(try_key(&segment, key, 7, true, rlr_table_admit));
    }
    segment_drop(&segment);
}

static void a_peek_makes_no_key_known(void **state)
{
    segment_t segment;

    segment_make(&segment, 64, 3);
    for (uint64_t key = 1; key < 6; key++) {
        assert_true(try_key(&segment, key, 7, false, rlr_table_peek));
    }
    assert_true(is_admitted(&segment, 1, 7));
    assert_true(is_admitted(&segment, 2, 7));
    assert_false(try_key(&segment, 3, 7, false, rlr_table_peek));
    segment_drop(&segment);
}

static void a_key_used_every_half_hour_remains_known(void **state)
{
    segment_t segment;

    segment_make(&segment, 16, 4);
    assert_true(is_admitted(&segment, 1, 7));
    assert_true(is_admitted(&segment, 2, 7));
    for (int i = 0; i < 20; i++) {
        segment.time.us += 29 * MINUTE_US;
        crowd(&segment);
        assert_true(is_admitted(&segment, 1, 7));
    }
    assert_false(is_admitted(&segment, 2, 7));
    segment_drop(&segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_new_keys_of_an_address_are_limited),
        CHECK_TEST(a_dry_run_admits_every_key),
        CHECK_TEST(a_peek_makes_no_key_known),
        CHECK_TEST(a_key_used_every_half_hour_remains_known)};

    return CHECK_RUN(tests);
}
