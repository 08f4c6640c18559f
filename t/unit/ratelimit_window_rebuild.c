/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/window.c */
/* OBJECTS: ../mod_ratelimit_regional/counter/window_rebuild.c */
/* Rebuilding a window: no admission is lost by a change or a death at any
 * step. */
#include "check.h"

#include "ratelimit_sim.h"

#define DAY_US (86400 * 1000000ULL)

/* A window whose limit changes, and the log of the admissions that it must
 * count. */
typedef struct subject_t {
    rlr_window_t window;
    rlr_limit_t limit;
    sim_time_t time;
    rlr_clock_t clock;
    sim_log_t log;
    uint64_t seed;
    uint64_t exact_from_us; /* no mark of an earlier limit counts from here */
} subject_t;

static void start(subject_t *subject, rlr_limit_t limit, uint64_t seed)
{
    memset(subject, 0, sizeof(*subject));
    subject->limit = limit;
    subject->time.us = DAY_US + seed;
    subject->clock.read = sim_read;
    subject->clock.baton = &subject->time;
    subject->seed = seed * 2654435761U + 1;
    sim_log_make(&subject->log, 4096);
    sim_build(&subject->window, limit, &subject->clock);
}

static bool admit(subject_t *subject, rlr_window_decision_t *decision)
{
    assert_int_equal(rlr_window_admit(&subject->window, SIM_OWNER,
                                      subject->limit, subject->limit.count,
                                      &subject->clock, decision),
                     RLR_WINDOW_DECIDED);
    return decision->admitted;
}

static void change_limit(subject_t *subject, rlr_limit_t limit)
{
    rlr_window_copy_t copy;

    rlr_window_close(&copy, &subject->window, limit.interval_sec, false,
                     &subject->clock);
    rlr_window_copy_fit(&copy, NULL, limit);
    rlr_window_begin(&subject->window, &copy, &subject->clock);
    rlr_window_finish(&subject->window, SIM_OWNER, limit, &copy);
    subject->limit = limit;
}

/* Drops from the log what the window drops: admissions that had expired under
 * the old limit, and those beyond the new one. */
static void forget_older(subject_t *subject, uint64_t interval_us,
                         uint32_t count)
{
    uint64_t kept = 0;

    while (kept < count
           && sim_log_has(&subject->log, kept + 1,
                          subject->time.us - interval_us)) {
        kept++;
    }
    for (uint64_t i = 0; i < kept; i++) {
        /* In place: between two changes the log does not wrap. */
        subject->log.times[i] = sim_log_at(&subject->log, kept - 1 - i);
    }
    subject->log.total = kept;
}

static void ask_and_judge(subject_t *subject)
{
    uint32_t count = subject->limit.count;
    uint32_t group = (count + 63) / 64;
    uint64_t interval_us = subject->limit.interval_sec * 1000000ULL;
    uint64_t now = subject->time.us;
    rlr_window_decision_t decision;

    if (admit(subject, &decision)) {
        assert_true(subject->log.total < count
                    || now - sim_log_at(&subject->log, count - 1)
                        >= interval_us);
        sim_log_add(&subject->log, now);
    }
    else if (now >= subject->exact_from_us) {
        assert_true(sim_log_has(&subject->log, count - (group - 1),
                                now - interval_us - 2000));
    }
}

static rlr_limit_t choose_limit(uint64_t *seed)
{
    static const uint32_t counts[] = {1, 10, 15, 64, 65, 100, 300, 1000, 2000};
    rlr_limit_t limit = {counts[sim_random(seed) % 9],
                         (uint32_t)(1 + sim_random(seed) % 60)};

    return limit;
}

static void a_changed_limit_admits_no_more_than_the_new_count(void **state)
{
    int runs = (int)(400 * sim_effort());

    for (int i = 0; i < runs; i++) {
        subject_t subject;
        uint64_t seed = (uint64_t)i + 7;

        start(&subject, choose_limit(&seed), (uint64_t)i);
        for (int change = 0; change < 12; change++) {
            rlr_limit_t next = choose_limit(&subject.seed);
            uint64_t step = subject.limit.interval_sec * 1000000ULL
                / (subject.limit.count * (1 + sim_random(&subject.seed) % 4));

            for (int j = 0; j < 400; j++) {
                subject.time.us += sim_random(&subject.seed) % (2 * step + 1);
                ask_and_judge(&subject);
            }
            forget_older(&subject, subject.limit.interval_sec * 1000000ULL,
                         next.count);
            change_limit(&subject, next);
            assert_null(rlr_window_validate(&subject.window, &subject.clock));
            subject.exact_from_us = subject.time.us + 120 * 1000000ULL;
        }
        sim_log_drop(&subject.log);
    }
}

static void a_new_count_with_marks_of_the_same_size_keeps_every_time(
    void **state)
{
    static const rlr_limit_t before = {15, 10};
    static const rlr_limit_t after = {20, 10};
    rlr_window_decision_t decision;
    subject_t subject;

    start(&subject, before, 1);
    for (int i = 0; i < 15; i++) {
        assert_true(admit(&subject, &decision));
        subject.time.us += 100000;
    }
    change_limit(&subject, after);
    for (int i = 0; i < 5; i++) {
        assert_true(admit(&subject, &decision));
    }
    assert_false(admit(&subject, &decision));
    /* The first was 1.5 s ago; microsecond 1 was rounded up to a ms. */
    assert_in_range(decision.wait_ms, 8500, 8501);
    sim_log_drop(&subject.log);
}

static void a_smaller_limit_waits_for_the_youngest_that_fit(void **state)
{
    static const rlr_limit_t before = {10, 10};
    static const rlr_limit_t after = {4, 10};
    rlr_window_decision_t decision;
    subject_t subject;

    start(&subject, before, 0);
    for (int i = 0; i < 10; i++) {
        assert_true(admit(&subject, &decision));
        subject.time.us += 500000;
    }
    change_limit(&subject, after);
    assert_false(admit(&subject, &decision));
    /* Four are left, made at 3, 3.5, 4 and 4.5 s; it is 5 s. */
    assert_int_equal(decision.wait_ms, 8000);
    subject.time.us += 8000000;
    assert_true(admit(&subject, &decision));
    assert_false(admit(&subject, &decision));
    sim_log_drop(&subject.log);
}

/* The time of the admission with `younger` ones after it. */
static uint32_t get_time(const rlr_window_copy_t *copy, uint32_t younger)
{
    return copy->marks[(copy->count - 1 - younger) / copy->group];
}

static rlr_window_copy_t make_copy(uint64_t *seed)
{
    rlr_limit_t limit = choose_limit(seed);
    rlr_window_copy_t copy = {0, (limit.count + 63) / 64, {0}};
    uint32_t time = 0xfffff000U + (uint32_t)(sim_random(seed) % 0x2000);

    copy.count = (uint32_t)(sim_random(seed) % (limit.count + 1));
    for (uint32_t i = 0; i * copy.group < copy.count; i++) {
        time += (uint32_t)(sim_random(seed) % 200);
        copy.marks[i] = time;
    }
    return copy;
}

/* Times that wrap between the two are compared as elsewhere. */
static void a_fitted_copy_covers_both_for_every_number_of_admissions(
    void **state)
{
    uint64_t seed = 99;

    for (int i = 0; i < 20000; i++) {
        rlr_window_copy_t a = make_copy(&seed);
        rlr_window_copy_t b = make_copy(&seed);
        rlr_window_copy_t fitted = a;
        rlr_limit_t limit = choose_limit(&seed);
        uint32_t most = a.count > b.count ? a.count : b.count;

        rlr_window_copy_fit(&fitted, &b, limit);
        assert_int_equal(fitted.group, (limit.count + 63) / 64);
        assert_int_equal(fitted.count, most < limit.count ? most : limit.count);
        for (uint32_t younger = 0; younger < fitted.count; younger++) {
            uint32_t time = get_time(&fitted, younger);

            assert_true(younger >= a.count
                        || (int32_t)(time - get_time(&a, younger)) >= 0);
            assert_true(younger >= b.count
                        || (int32_t)(time - get_time(&b, younger)) >= 0);
        }
    }
}

/* A full window that the test closes and leaves at some step. */
static void make_full(subject_t *subject)
{
    static const rlr_limit_t limit = {100, 10};
    rlr_window_decision_t decision;

    start(subject, limit, 3);
    for (int i = 0; i < 100; i++) {
        assert_true(admit(subject, &decision));
        subject->time.us += 10000;
    }
}

static void assert_full_until_its_time(subject_t *subject, uint32_t longest_ms)
{
    rlr_window_decision_t decision;

    assert_null(rlr_window_validate(&subject->window, &subject->clock));
    assert_false(admit(subject, &decision));
    assert_in_range(decision.wait_ms, 9000, longest_ms);
    subject->time.us += decision.wait_ms * 1000ULL;
    assert_true(admit(subject, &decision));
    sim_log_drop(&subject->log);
}

static void a_closed_window_does_not_decide_and_is_live(void **state)
{
    rlr_window_copy_t copy;
    rlr_window_decision_t decision;
    subject_t subject;

    make_full(&subject);
    rlr_window_close(&copy, &subject.window, 0, false, &subject.clock);
    assert_int_equal(copy.count, 100);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rlr_window_admit(&subject.window, SIM_OWNER,
                                          subject.limit, 100, &subject.clock,
                                          &decision),
                         RLR_WINDOW_CHANGED);
        assert_int_equal(rlr_window_peek(&subject.window, SIM_OWNER,
                                         subject.limit, 100, &subject.clock,
                                         &decision),
                         RLR_WINDOW_CHANGED);
        assert_false(rlr_window_reset(&subject.window, SIM_OWNER));
        assert_true(rlr_window_is_live(&subject.window, &subject.clock));
        rlr_window_begin(&subject.window, &copy, &subject.clock);
    }
    assert_false(rlr_window_copy(&copy, &subject.window, 0, &subject.clock));
    assert_int_equal(copy.count, 0);
    sim_log_drop(&subject.log);
}

static void death_after_close_changes_nothing(void **state)
{
    rlr_window_copy_t copy;
    subject_t subject;

    make_full(&subject);
    rlr_window_close(&copy, &subject.window, 0, false, &subject.clock);
    rlr_window_repair(&subject.window);
    assert_full_until_its_time(&subject, 9031);
}

static void death_while_writing_keeps_every_admission(void **state)
{
    rlr_window_copy_t copy;
    subject_t subject;

    for (int written = 0; written < 50; written++) {
        make_full(&subject);
        rlr_window_close(&copy, &subject.window, 0, false, &subject.clock);
        rlr_window_begin(&subject.window, &copy, &subject.clock);
        for (int i = 0; i < written; i++) {
            subject.window.marks[i] = copy.marks[i];
        }
        subject.time.us += 50000;
        rlr_window_repair(&subject.window);
        /* All of them at the time of the youngest. */
        assert_full_until_its_time(&subject, 9951);
    }
}

static void death_between_two_limits_keeps_every_admission(void **state)
{
    static const rlr_limit_t smaller = {20, 10};
    rlr_window_copy_t copy;
    subject_t subject;

    make_full(&subject);
    rlr_window_close(&copy, &subject.window, 0, false, &subject.clock);
    rlr_window_copy_fit(&copy, NULL, smaller);
    rlr_window_begin(&subject.window, &copy, &subject.clock);
    subject.window.limit = (uint64_t)smaller.interval_sec << 32 | smaller.count;
    subject.limit = smaller;
    rlr_window_repair(&subject.window);
    assert_full_until_its_time(&subject, 9991);
}

static void a_window_closed_by_a_death_weeks_ago_is_empty(void **state)
{
    rlr_window_decision_t decision;
    rlr_window_copy_t copy;
    subject_t subject;

    for (int begun = 0; begun < 2; begun++) {
        make_full(&subject);
        rlr_window_close(&copy, &subject.window, 0, false, &subject.clock);
        if (begun) {
            rlr_window_begin(&subject.window, &copy, &subject.clock);
        }
        subject.time.us += (1ULL << 32) * 1000;
        rlr_window_repair(&subject.window);
        assert_false(rlr_window_is_live(&subject.window, &subject.clock));
        assert_true(admit(&subject, &decision));
        assert_int_equal(decision.remaining, 99);
        sim_log_drop(&subject.log);
    }
}

static void a_live_window_is_not_closed_for_another_owner(void **state)
{
    rlr_window_copy_t copy;
    subject_t subject;

    make_full(&subject);
    assert_false(
        rlr_window_close(&copy, &subject.window, 0, true, &subject.clock));
    subject.time.us += 9989000;
    assert_false(
        rlr_window_close(&copy, &subject.window, 0, true, &subject.clock));
    subject.time.us += 2000;
    assert_true(
        rlr_window_close(&copy, &subject.window, 0, true, &subject.clock));
    assert_int_equal(copy.count, 0);
    sim_log_drop(&subject.log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_changed_limit_admits_no_more_than_the_new_count),
        CHECK_TEST(a_new_count_with_marks_of_the_same_size_keeps_every_time),
        CHECK_TEST(a_smaller_limit_waits_for_the_youngest_that_fit),
        CHECK_TEST(a_fitted_copy_covers_both_for_every_number_of_admissions),
        CHECK_TEST(a_closed_window_does_not_decide_and_is_live),
        CHECK_TEST(death_after_close_changes_nothing),
        CHECK_TEST(death_while_writing_keeps_every_admission),
        CHECK_TEST(death_between_two_limits_keeps_every_admission),
        CHECK_TEST(a_window_closed_by_a_death_weeks_ago_is_empty),
        CHECK_TEST(a_live_window_is_not_closed_for_another_owner)};

    return CHECK_RUN(tests);
}
