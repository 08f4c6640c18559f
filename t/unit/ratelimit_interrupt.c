/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* Another process at any instruction of a request: the decision and all later
 * ones are as if the two had run one after the other. */
#include "check.h"

#include "ratelimit_trap.h"
#include "ratelimit_share.h"

static const rlr_limit_t five = {5, 10};
static const rlr_limit_t eight = {8, 10};

static void admit(stage_t *stage)
{
    rlr_window_admit(&stage->window, SIM_OWNER, stage->limit,
                     stage->limit.count, &stage->clock, &stage->decision);
}

/* Admits one and logs it; for interruptions. */
static void admit_beside(stage_t *stage)
{
    rlr_window_decision_t decision;

    rlr_window_admit(&stage->window, SIM_OWNER, stage->limit,
                     stage->limit.count, &stage->clock, &decision);
    if (decision.admitted) {
        sim_log_add(&stage->log, decision.at_ms * 1000);
        stage->admitted++;
    }
}

static void build(stage_t *stage, uint32_t count)
{
    stage->limit.count = count;
    stage->limit.interval_sec = 10;
    sim_build(&stage->window, stage->limit, &stage->clock);
}

static void fill(stage_t *stage, uint32_t count)
{
    while (stage->admitted < count) {
        admit_beside(stage);
        stage->time.us += 1000;
    }
}

/* Logs the request's own admission, at its time. */
static void log_request(stage_t *stage)
{
    uint64_t us = stage->decision.at_ms * 1000;
    uint64_t i = stage->log.total;

    if (!stage->decision.admitted) {
        return;
    }
    sim_log_add(&stage->log, us);
    while (i > 0 && stage->log.times[i - 1] > us) {
        stage->log.times[i] = stage->log.times[i - 1];
        i--;
    }
    stage->log.times[i] = us;
}

/* All decisions so far, and those of the next three intervals, agree with an
 * exact log. */
static const char *judge_by_log(stage_t *stage)
{
    uint32_t group = (stage->limit.count + 63) / 64;
    uint32_t step_us = 10000000 / (4 * stage->limit.count);

    log_request(stage);
    for (uint32_t i = 0; i < 12 * stage->limit.count + 8; i++) {
        uint64_t now = stage->time.us;
        uint32_t before = stage->admitted;

        admit_beside(stage);
        if (stage->admitted == before) {
            DEMAND(sim_log_has(&stage->log, stage->limit.count - (group - 1),
                               now - 10002000));
        }
        stage->time.us += step_us;
    }
    for (uint64_t i = stage->limit.count; i < stage->log.total; i++) {
        DEMAND(stage->log.times[i] - stage->log.times[i - stage->limit.count]
               >= 10000000);
    }
    return NULL;
}

/* All marks in use, the older half expired. */
static void prepare_half_over(stage_t *stage)
{
    build(stage, 64);
    for (int i = 0; i < 64; i++) {
        admit_beside(stage);
        stage->time.us += 150000;
    }
    stage->time.us += 5000000;
}

static void admit_ten(stage_t *stage)
{
    for (int i = 0; i < 10; i++) {
        admit_beside(stage);
    }
}

static const char *judge_admitted(stage_t *stage)
{
    DEMAND(stage->decision.admitted);
    return judge_by_log(stage);
}

static void marks_of_later_requests_do_not_refuse_a_request(void **state)
{
    play(prepare_half_over, admit, admit_ten, judge_admitted, false);
}

static void prepare_one(stage_t *stage)
{
    build(stage, 1);
    fill(stage, 1);
    stage->time.us += 11000000;
}

/* As many admissions as return the ring, and all but the sequence, to its
 * state. */
static void admit_a_round(stage_t *stage)
{
    for (int i = 0; i < RLR_WINDOW_RING; i++) {
        admit_beside(stage);
        stage->time.us += 10001000;
    }
    stage->time.us -= 10001000;
}

static void a_recurring_state_is_detected(void **state)
{
    play(prepare_one, admit, admit_a_round, judge_by_log, false);
}

static void prepare_half(stage_t *stage)
{
    build(stage, 10);
    fill(stage, 5);
}

static void admit_and_wait(stage_t *stage)
{
    admit_beside(stage);
    stage->time.us += 5000000;
}

static void a_mark_is_not_raised_late(void **state)
{
    play(prepare_half, admit, admit_and_wait, judge_by_log, false);
}

static void prepare_groups(stage_t *stage)
{
    build(stage, 300);
    fill(stage, 3);
}

static void admit_more_and_wait(stage_t *stage)
{
    admit_ten(stage);
    stage->time.us += 5000000;
}

static void a_mark_of_a_group_is_not_raised_late(void **state)
{
    play(prepare_groups, admit, admit_more_and_wait, judge_by_log, false);
}

/* The request is then the fifth and last in the oldest mark. */
static void wait_and_admit_one(stage_t *stage)
{
    stage->time.us += 5000000;
    admit_beside(stage);
}

static void a_mark_of_a_group_is_not_lowered(void **state)
{
    play(prepare_groups, admit, wait_and_admit_one, judge_by_log, false);
}

static void prepare_full(stage_t *stage)
{
    build(stage, 15);
    fill(stage, 15);
    stage->time.us += 9000000;
}

static void wait_and_admit(stage_t *stage)
{
    stage->time.us += 1500000;
    for (int i = 0; i < 20; i++) {
        admit_beside(stage);
    }
}

static void an_old_clock_reading_is_not_published(void **state)
{
    play(prepare_full, admit, wait_and_admit, judge_by_log, false);
}

/* Tables: the request is for key 7. */
static void ask_table(stage_t *stage)
{
    stage->decision = segment_ask(&stage->segment, 7, five).window;
}

static void make_table(stage_t *stage)
{
    segment_make(&stage->segment, 16, 3);
    stage->segment.clock.baton = &stage->segment.time;
}

static uint32_t use_up(stage_t *stage, uint64_t key)
{
    uint32_t admitted = 0;

    while (segment_ask(&stage->segment, key, five).window.admitted) {
        admitted++;
    }
    return admitted;
}

static void prepare_known_and_over(stage_t *stage)
{
    make_table(stage);
    use_up(stage, 7);
    stage->segment.time.us += 11000000;
}

/* Other keys claim all slots and use up their limits. */
static void take_all_places(stage_t *stage)
{
    for (uint64_t key = 100; !stage_is_locked(stage) && key < 160; key++) {
        use_up(stage, key);
    }
}

static const char *judge_taken(stage_t *stage)
{
    DEMAND(use_up(stage, 7) + stage->decision.admitted <= 5);
    for (uint64_t key = 100; key < 160; key++) {
        uint64_t known = key;
        rlr_table_request_t request = segment_request(&stage->segment, &known,
                                                      five);

        /* Keys with a slot there have used up their limit. */
        if (stage->decision.at_ms != 0
            && rlr_table_knows(&stage->segment.table, &request)
            && segment_peek(&stage->segment, key, five).window.remaining > 0) {
            DEMAND(use_up(stage, key) == 5);
        }
    }
    return stage_drop_table(stage);
}

static void a_slot_of_another_key_is_not_charged(void **state)
{
    play(prepare_known_and_over, ask_table, take_all_places, judge_taken, true);
}

/* Another process claims a slot for the same key first and uses up its
 * limit. */
static void place_first(stage_t *stage)
{
    if (!stage_is_locked(stage)) {
        stage->admitted = use_up(stage, 7);
    }
}

static const char *judge_once(stage_t *stage)
{
    stage->admitted += stage->decision.admitted;
    stage->admitted += use_up(stage, 7);
    DEMAND(stage->admitted == 5);
    return stage_drop_table(stage);
}

static void a_key_that_gets_a_slot_concurrently_is_found(void **state)
{
    play(make_table, ask_table, place_first, judge_once, true);
}

static void prepare_all_over(stage_t *stage)
{
    make_table(stage);
    for (uint64_t key = 100; key < 300; key++) {
        segment_ask(&stage->segment, key, five);
    }
    stage->segment.time.us += 11000000;
}

/* Dead keys become live, without a lock, while slots are searched. */
static void wake_all(stage_t *stage)
{
    const rlr_table_t *table = &stage->segment.table;

    for (size_t i = 0; i < (size_t)table->sets * RLR_WAYS; i++) {
        rlr_window_t *window = &table->slots[i].window;
        rlr_window_decision_t decision;

        stage->admitted += rlr_window_admit(window, window->owner, five, 5,
                                            &stage->segment.clock, &decision)
                == RLR_WINDOW_DECIDED
            && decision.admitted;
    }
}

static const char *judge_all_count(stage_t *stage)
{
    const rlr_table_t *table = &stage->segment.table;
    uint32_t held = 0;

    for (size_t i = 0; i < (size_t)table->sets * RLR_WAYS; i++) {
        rlr_window_copy_t copy;

        rlr_window_copy(&copy, &table->slots[i].window, 0,
                        &stage->segment.clock);
        held += copy.count;
    }
    for (uint32_t i = 0; i < RLR_GROUPS; i++) {
        rlr_window_copy_t copy;

        rlr_window_copy(&copy, &rlr_layout_overflow_slot(table, 0, i)->window,
                        0, &stage->segment.clock);
        held += copy.count;
    }
    DEMAND(held == stage->admitted + stage->decision.admitted);
    return stage_drop_table(stage);
}

static void a_key_that_becomes_live_keeps_its_slot(void **state)
{
    play(prepare_all_over, ask_table, wake_all, judge_all_count, true);
}

static void prepare_other_limit(stage_t *stage)
{
    make_table(stage);
    for (int i = 0; i < 3; i++) {
        segment_ask(&stage->segment, 7, five);
    }
}

static void ask_with_new_limit(stage_t *stage)
{
    stage->decision = segment_ask(&stage->segment, 7, eight).window;
}

static const char *judge_new_limit(stage_t *stage)
{
    uint32_t remaining = segment_peek(&stage->segment, 7, eight)
                             .window.remaining;

    DEMAND(stage->decision.admitted);
    DEMAND(remaining == 8 - 3 - 1 - stage->admitted);
    return stage_drop_table(stage);
}

static void a_changed_limit_loses_no_admission(void **state)
{
    /* Processes with the old limit continue until the new one is in place. */
    play(prepare_other_limit, ask_with_new_limit, wake_all, judge_new_limit,
         true);
}

/* ---- Reclaimed slots ---- */

/* The address has its share of four slots, all with dead keys. */
static void prepare_share_over(stage_t *stage)
{
    segment_make(&stage->segment, 64, 3);
    stage->segment.clock.baton = &stage->segment.time;
    stage->segment.holder = 1;
    for (uint64_t key = 1000; key < 1004; key++) {
        segment_ask(&stage->segment, key, five);
    }
    stage->segment.time.us += 11000000;
}

/* Other requests of the address have new keys, and sweep too. */
static void sweep_first(stage_t *stage)
{
    if (!stage_is_locked(stage)) {
        for (uint64_t key = 2000; key < 2006; key++) {
            stage->admitted += segment_ask(&stage->segment, key, five)
                                   .window.admitted;
        }
    }
}

/* Each slot is counted exactly once. */
static const char *judge_shares(stage_t *stage)
{
    DEMAND(stage->decision.at_ms != 0);
    DEMAND(segment_excess(&stage->segment.table) == 0);
    use_up(stage, 8);
    use_up(stage, 7);
    DEMAND(segment_excess(&stage->segment.table) == 0);
    return stage_drop_table(stage);
}

static void two_sweeps_reclaim_a_slot_once(void **state)
{
    play(prepare_share_over, ask_table, sweep_first, judge_shares, true);
}

/* Slots of dead keys are claimed by another address after the sweep has seen
 * them. */
static void take_for_another(stage_t *stage)
{
    if (!stage_is_locked(stage)) {
        stage->segment.holder = 2;
        for (uint64_t key = 3000; key < 3004; key++) {
            use_up(stage, key);
        }
        stage->segment.holder = 1;
    }
}

static const char *judge_another(stage_t *stage)
{
    stage->segment.holder = 2;
    for (uint64_t key = 3000; key < 3004; key++) {
        uint32_t admitted = use_up(stage, key);

        DEMAND(admitted == 0 || admitted == 5);
    }
    stage->segment.holder = 1;
    return judge_shares(stage);
}

static void a_slot_claimed_by_another_address_is_not_reclaimed(void **state)
{
    play(prepare_share_over, ask_table, take_for_another, judge_another, true);
}

static void a_key_that_becomes_live_is_not_reclaimed(void **state)
{
    play(prepare_share_over, ask_table, wake_all, judge_all_count, true);
}

static void ask_known(stage_t *stage)
{
    stage->decision = segment_ask(&stage->segment, 1000, five).window;
}

static const char *judge_known(stage_t *stage)
{
    DEMAND(stage->decision.admitted);
    DEMAND(use_up(stage, 1000) <= 4);
    DEMAND(segment_excess(&stage->segment.table) == 0);
    return stage_drop_table(stage);
}

static void a_key_whose_slot_is_reclaimed_concurrently_is_counted(void **state)
{
    play(prepare_share_over, ask_known, sweep_first, judge_known, false);
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
