/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* Not under valgrind: it stops at single instructions. */
/* Another process at any instruction of a request: the decision and all later
 * ones are as if the two had run one after the other. */
#include "check.h"

#include "ratelimit_trap.h"
#include "ratelimit_share.h"

static const rlr_limit_t five = {5, 10};
static const rlr_limit_t eight = {8, 10};

static void admit(fixture_t *fixture)
{
    rlr_window_admit(&fixture->window, SIM_OWNER, fixture->limit,
                     fixture->limit.count, &fixture->clock, &fixture->decision);
}

/* Admits one and logs it; for interruptions. */
static void admit_beside(fixture_t *fixture)
{
    rlr_window_decision_t decision;

    rlr_window_admit(&fixture->window, SIM_OWNER, fixture->limit,
                     fixture->limit.count, &fixture->clock, &decision);
    if (decision.admitted) {
        sim_log_add(&fixture->log, decision.at_ms * 1000);
        fixture->admitted++;
    }
}

static void build(fixture_t *fixture, uint32_t count)
{
    fixture->limit.count = count;
    fixture->limit.interval_sec = 10;
    sim_build(&fixture->window, fixture->limit, &fixture->clock);
}

static void fill(fixture_t *fixture, uint32_t count)
{
    while (fixture->admitted < count) {
        admit_beside(fixture);
        fixture->time.us += 1000;
    }
}

/* Logs the request's own admission, at its time. */
static void log_request(fixture_t *fixture)
{
    uint64_t us = fixture->decision.at_ms * 1000;
    uint64_t i = fixture->log.total;

    if (!fixture->decision.admitted) {
        return;
    }
    sim_log_add(&fixture->log, us);
    while (i > 0 && fixture->log.times[i - 1] > us) {
        fixture->log.times[i] = fixture->log.times[i - 1];
        i--;
    }
    fixture->log.times[i] = us;
}

/* All decisions so far, and those of the next three intervals, agree with an
 * exact log. */
static const char *verify_by_log(fixture_t *fixture)
{
    uint32_t group = (fixture->limit.count + 63) / 64;
    uint32_t step_us = 10000000 / (4 * fixture->limit.count);

    log_request(fixture);
    for (uint32_t i = 0; i < 12 * fixture->limit.count + 8; i++) {
        uint64_t now = fixture->time.us;
        uint32_t before = fixture->admitted;

        admit_beside(fixture);
        if (fixture->admitted == before) {
            DEMAND(sim_log_has(&fixture->log,
                               fixture->limit.count - (group - 1),
                               now - 10002000));
        }
        fixture->time.us += step_us;
    }
    for (uint64_t i = fixture->limit.count; i < fixture->log.total; i++) {
        DEMAND(fixture->log.times[i]
                   - fixture->log.times[i - fixture->limit.count]
               >= 10000000);
    }
    return NULL;
}

/* All marks in use, the older half expired. */
static void prepare_half_expired(fixture_t *fixture)
{
    build(fixture, 64);
    for (int i = 0; i < 64; i++) {
        admit_beside(fixture);
        fixture->time.us += 150000;
    }
    fixture->time.us += 5000000;
}

static void admit_ten(fixture_t *fixture)
{
    for (int i = 0; i < 10; i++) {
        admit_beside(fixture);
    }
}

static const char *verify_admitted(fixture_t *fixture)
{
    DEMAND(fixture->decision.admitted);
    return verify_by_log(fixture);
}

static void marks_of_later_requests_do_not_refuse_a_request(void **state)
{
    test_interrupted(prepare_half_expired, admit, admit_ten, verify_admitted,
                     false);
}

static void prepare_one(fixture_t *fixture)
{
    build(fixture, 1);
    fill(fixture, 1);
    fixture->time.us += 11000000;
}

/* As many admissions as return the ring, and all but the sequence, to its
 * state. */
static void admit_a_round(fixture_t *fixture)
{
    for (int i = 0; i < RLR_WINDOW_RING; i++) {
        admit_beside(fixture);
        fixture->time.us += 10001000;
    }
    fixture->time.us -= 10001000;
}

static void a_recurring_state_is_detected(void **state)
{
    test_interrupted(prepare_one, admit, admit_a_round, verify_by_log, false);
}

static void prepare_half(fixture_t *fixture)
{
    build(fixture, 10);
    fill(fixture, 5);
}

static void admit_and_wait(fixture_t *fixture)
{
    admit_beside(fixture);
    fixture->time.us += 5000000;
}

static void a_mark_is_not_raised_late(void **state)
{
    test_interrupted(prepare_half, admit, admit_and_wait, verify_by_log, false);
}

static void prepare_groups(fixture_t *fixture)
{
    build(fixture, 300);
    fill(fixture, 3);
}

static void admit_more_and_wait(fixture_t *fixture)
{
    admit_ten(fixture);
    fixture->time.us += 5000000;
}

static void a_mark_of_a_group_is_not_raised_late(void **state)
{
    test_interrupted(prepare_groups, admit, admit_more_and_wait, verify_by_log,
                     false);
}

/* The request is then the fifth and last in the oldest mark. */
static void wait_and_admit_one(fixture_t *fixture)
{
    fixture->time.us += 5000000;
    admit_beside(fixture);
}

static void a_mark_of_a_group_is_not_lowered(void **state)
{
    test_interrupted(prepare_groups, admit, wait_and_admit_one, verify_by_log,
                     false);
}

static void prepare_full(fixture_t *fixture)
{
    build(fixture, 15);
    fill(fixture, 15);
    fixture->time.us += 9000000;
}

static void wait_and_admit(fixture_t *fixture)
{
    fixture->time.us += 1500000;
    for (int i = 0; i < 20; i++) {
        admit_beside(fixture);
    }
}

static void an_old_clock_reading_is_not_published(void **state)
{
    test_interrupted(prepare_full, admit, wait_and_admit, verify_by_log, false);
}

/* Tables: the request is for key 7. */
static void admit_new(fixture_t *fixture)
{
    fixture->decision = segment_admit(&fixture->segment, 7, five).window;
}

static void make_table(fixture_t *fixture)
{
    segment_make(&fixture->segment, 16, 3);
    fixture->segment.clock.baton = &fixture->segment.time;
}

static uint32_t use_up(fixture_t *fixture, uint64_t key)
{
    uint32_t admitted = 0;

    while (segment_admit(&fixture->segment, key, five).window.admitted) {
        admitted++;
    }
    return admitted;
}

static void prepare_expired_key(fixture_t *fixture)
{
    make_table(fixture);
    use_up(fixture, 7);
    fixture->segment.time.us += 11000000;
}

/* Other keys claim all slots and use up their limits. */
static void claim_all_slots(fixture_t *fixture)
{
    for (uint64_t key = 100; !fixture_is_locked(fixture) && key < 160; key++) {
        use_up(fixture, key);
    }
}

static const char *verify_claimed(fixture_t *fixture)
{
    DEMAND(use_up(fixture, 7) + fixture->decision.admitted <= 5);
    for (uint64_t key = 100; key < 160; key++) {
        uint64_t known = key;
        rlr_table_request_t request = segment_request(&fixture->segment, &known,
                                                      five);

        /* Keys with a slot there have used up their limit. */
        if (fixture->decision.at_ms != 0
            && rlr_table_knows(&fixture->segment.table, &request)
            && segment_peek(&fixture->segment, key, five).window.remaining
                > 0) {
            DEMAND(use_up(fixture, key) == 5);
        }
    }
    return fixture_drop_table(fixture);
}

static void a_slot_of_another_key_is_not_charged(void **state)
{
    test_interrupted(prepare_expired_key, admit_new, claim_all_slots,
                     verify_claimed, true);
}

/* Another process claims a slot for the same key first and uses up its
 * limit. */
static void claim_first(fixture_t *fixture)
{
    if (!fixture_is_locked(fixture)) {
        fixture->admitted = use_up(fixture, 7);
    }
}

static const char *verify_once(fixture_t *fixture)
{
    fixture->admitted += fixture->decision.admitted;
    fixture->admitted += use_up(fixture, 7);
    DEMAND(fixture->admitted == 5);
    return fixture_drop_table(fixture);
}

static void a_key_that_gets_a_slot_concurrently_is_found(void **state)
{
    test_interrupted(make_table, admit_new, claim_first, verify_once, true);
}

static void prepare_expired_keys(fixture_t *fixture)
{
    make_table(fixture);
    for (uint64_t key = 100; key < 300; key++) {
        segment_admit(&fixture->segment, key, five);
    }
    fixture->segment.time.us += 11000000;
}

/* Dead keys become live, without a lock, while slots are searched. */
static void revive_all(fixture_t *fixture)
{
    const rlr_table_t *table = &fixture->segment.table;

    for (size_t i = 0; i < (size_t)table->sets * RLR_WAYS; i++) {
        rlr_window_t *window = &table->slots[i].window;
        rlr_window_decision_t decision;

        fixture->admitted += rlr_window_admit(window, window->owner, five, 5,
                                              &fixture->segment.clock,
                                              &decision)
                == RLR_WINDOW_DECIDED
            && decision.admitted;
    }
}

static const char *verify_all_count(fixture_t *fixture)
{
    const rlr_table_t *table = &fixture->segment.table;
    uint32_t held = 0;

    for (size_t i = 0; i < (size_t)table->sets * RLR_WAYS; i++) {
        rlr_window_copy_t copy;

        rlr_window_copy(&copy, &table->slots[i].window, 0,
                        &fixture->segment.clock);
        held += copy.count;
    }
    for (uint32_t i = 0; i < RLR_OVERFLOW_WINDOWS; i++) {
        rlr_window_copy_t copy;

        rlr_window_copy(&copy, &rlr_layout_overflow_slot(table, 0, i)->window,
                        0, &fixture->segment.clock);
        held += copy.count;
    }
    DEMAND(held == fixture->admitted + fixture->decision.admitted);
    return fixture_drop_table(fixture);
}

static void a_key_that_becomes_live_keeps_its_slot(void **state)
{
    test_interrupted(prepare_expired_keys, admit_new, revive_all,
                     verify_all_count, true);
}

static void prepare_other_limit(fixture_t *fixture)
{
    make_table(fixture);
    for (int i = 0; i < 3; i++) {
        segment_admit(&fixture->segment, 7, five);
    }
}

static void admit_with_new_limit(fixture_t *fixture)
{
    fixture->decision = segment_admit(&fixture->segment, 7, eight).window;
}

static const char *verify_new_limit(fixture_t *fixture)
{
    uint32_t remaining = segment_peek(&fixture->segment, 7, eight)
                             .window.remaining;

    DEMAND(fixture->decision.admitted);
    DEMAND(remaining == 8 - 3 - 1 - fixture->admitted);
    return fixture_drop_table(fixture);
}

static void a_changed_limit_loses_no_admission(void **state)
{
    /* Processes with the old limit continue until the new one is set. */
    test_interrupted(prepare_other_limit, admit_with_new_limit, revive_all,
                     verify_new_limit, true);
}

/* ---- Reclaimed slots ---- */

/* The address has its share of four slots, all with dead keys. */
static void prepare_expired_share(fixture_t *fixture)
{
    segment_make(&fixture->segment, 64, 3);
    fixture->segment.clock.baton = &fixture->segment.time;
    fixture->segment.holder = 1;
    for (uint64_t key = 1000; key < 1004; key++) {
        segment_admit(&fixture->segment, key, five);
    }
    fixture->segment.time.us += 11000000;
}

/* Other requests of the address have new keys, and sweep too. */
static void sweep_first(fixture_t *fixture)
{
    if (!fixture_is_locked(fixture)) {
        for (uint64_t key = 2000; key < 2006; key++) {
            fixture->admitted += segment_admit(&fixture->segment, key, five)
                                     .window.admitted;
        }
    }
}

/* Each slot is counted exactly once. */
static const char *verify_shares(fixture_t *fixture)
{
    DEMAND(fixture->decision.at_ms != 0);
    DEMAND(segment_excess(&fixture->segment.table) == 0);
    use_up(fixture, 8);
    use_up(fixture, 7);
    DEMAND(segment_excess(&fixture->segment.table) == 0);
    return fixture_drop_table(fixture);
}

static void two_sweeps_reclaim_a_slot_once(void **state)
{
    test_interrupted(prepare_expired_share, admit_new, sweep_first,
                     verify_shares, true);
}

/* Slots of dead keys are claimed by another address after the sweep has seen
 * them. */
static void claim_for_another(fixture_t *fixture)
{
    if (!fixture_is_locked(fixture)) {
        fixture->segment.holder = 2;
        for (uint64_t key = 3000; key < 3004; key++) {
            use_up(fixture, key);
        }
        fixture->segment.holder = 1;
    }
}

static const char *verify_another(fixture_t *fixture)
{
    fixture->segment.holder = 2;
    for (uint64_t key = 3000; key < 3004; key++) {
        uint32_t admitted = use_up(fixture, key);

        DEMAND(admitted == 0 || admitted == 5);
    }
    fixture->segment.holder = 1;
    return verify_shares(fixture);
}

static void a_slot_claimed_by_another_address_is_not_reclaimed(void **state)
{
    test_interrupted(prepare_expired_share, admit_new, claim_for_another,
                     verify_another, true);
}

static void a_key_that_becomes_live_is_not_reclaimed(void **state)
{
    test_interrupted(prepare_expired_share, admit_new, revive_all,
                     verify_all_count, true);
}

static void admit_known(fixture_t *fixture)
{
    fixture->decision = segment_admit(&fixture->segment, 1000, five).window;
}

static const char *verify_known(fixture_t *fixture)
{
    DEMAND(fixture->decision.admitted);
    DEMAND(use_up(fixture, 1000) <= 4);
    DEMAND(segment_excess(&fixture->segment.table) == 0);
    return fixture_drop_table(fixture);
}

static void a_key_whose_slot_is_reclaimed_concurrently_is_counted(void **state)
{
    test_interrupted(prepare_expired_share, admit_known, sweep_first,
                     verify_known, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(marks_of_later_requests_do_not_refuse_a_request),
        CHECK_TEST(a_recurring_state_is_detected),
        CHECK_TEST(a_mark_is_not_raised_late),
        CHECK_TEST(a_mark_of_a_group_is_not_raised_late),
        CHECK_TEST(a_mark_of_a_group_is_not_lowered),
        CHECK_TEST(an_old_clock_reading_is_not_published),
        CHECK_TEST(a_slot_of_another_key_is_not_charged),
        CHECK_TEST(a_key_that_gets_a_slot_concurrently_is_found),
        CHECK_TEST(a_key_that_becomes_live_keeps_its_slot),
        CHECK_TEST(a_changed_limit_loses_no_admission),
        CHECK_TEST(two_sweeps_reclaim_a_slot_once),
        CHECK_TEST(a_slot_claimed_by_another_address_is_not_reclaimed),
        CHECK_TEST(a_key_that_becomes_live_is_not_reclaimed),
        CHECK_TEST(a_key_whose_slot_is_reclaimed_concurrently_is_counted)};

    return CHECK_RUN(tests);
}
