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
typedef struct run_t {
    rlr_window_t window;
    rlr_limit_t limit;
    sim_time_t time;
    rlr_clock_t clock;
    sim_log_t log;
    uint64_t seed;
    uint64_t exact_from_us; /* no mark of an earlier limit counts from here */
} run_t;

static void start(run_t *run, rlr_limit_t limit, uint64_t seed)
{
    memset(run, 0, sizeof(*run));
    run->limit = limit;
    run->time.us = DAY_US + seed;
    run->clock.read = sim_read;
    run->clock.baton = &run->time;
    run->seed = seed * 2654435761U + 1;
    sim_log_make(&run->log, 4096);
    sim_build(&run->window, limit, &run->clock);
}

static bool admit(run_t *run, rlr_window_decision_t *decision)
{
    assert_int_equal(rlr_window_admit(&run->window, SIM_OWNER, run->limit,
                                      run->limit.count, &run->clock, decision),
                     RLR_WINDOW_DECIDED);
    return decision->admitted;
}

static void change_limit(run_t *run, rlr_limit_t limit)
{
    rlr_window_copy_t copy;

    rlr_window_close(&copy, &run->window, limit.interval_sec, false,
                     &run->clock);
    rlr_window_copy_fit(&copy, NULL, limit);
    rlr_window_begin(&run->window, &copy, &run->clock);
    rlr_window_finish(&run->window, SIM_OWNER, limit, &copy);
    run->limit = limit;
}

/* Drops from the log what the window drops: admissions that had expired under
 * the old limit, and those beyond the new one. */
static void forget_older(run_t *run, uint64_t interval_us, uint32_t count)
{
    uint64_t kept = 0;

    while (kept < count
           && sim_log_has(&run->log, kept + 1, run->time.us - interval_us)) {
        kept++;
    }
    for (uint64_t i = 0; i < kept; i++) {
        /* In place: between two changes the log does not wrap. */
        run->log.times[i] = sim_log_at(&run->log, kept - 1 - i);
    }
    run->log.total = kept;
}

static void request_and_check(run_t *run)
{
    uint32_t count = run->limit.count;
    uint32_t per_mark = (count + 63) / 64;
    uint64_t interval_us = run->limit.interval_sec * 1000000ULL;
    uint64_t now = run->time.us;
    rlr_window_decision_t decision;

    if (admit(run, &decision)) {
        assert_true(run->log.total < count
                    || now - sim_log_at(&run->log, count - 1) >= interval_us);
        sim_log_add(&run->log, now);
    }
    else if (now >= run->exact_from_us) {
        assert_true(sim_log_has(&run->log, count - (per_mark - 1),
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
        run_t run;
        uint64_t seed = (uint64_t)i + 7;

        start(&run, choose_limit(&seed), (uint64_t)i);
        for (int change = 0; change < 12; change++) {
            rlr_limit_t next = choose_limit(&run.seed);
            uint64_t step = run.limit.interval_sec * 1000000ULL
                / (run.limit.count * (1 + sim_random(&run.seed) % 4));

            for (int j = 0; j < 400; j++) {
                run.time.us += sim_random(&run.seed) % (2 * step + 1);
                request_and_check(&run);
            }
            forget_older(&run, run.limit.interval_sec * 1000000ULL, next.count);
            change_limit(&run, next);
            assert_null(rlr_window_validate(&run.window, &run.clock));
            run.exact_from_us = run.time.us + 120 * 1000000ULL;
        }
        sim_log_drop(&run.log);
    }
}

static void a_new_count_with_marks_of_the_same_size_keeps_every_time(
    void **state)
{
    static const rlr_limit_t before = {15, 10};
    static const rlr_limit_t after = {20, 10};
    rlr_window_decision_t decision;
    run_t run;

    start(&run, before, 1);
    for (int i = 0; i < 15; i++) {
        assert_true(admit(&run, &decision));
        run.time.us += 100000;
    }
    change_limit(&run, after);
    for (int i = 0; i < 5; i++) {
        assert_true(admit(&run, &decision));
    }
    assert_false(admit(&run, &decision));
    /* The first was 1.5 s ago; microsecond 1 was rounded up to a ms. */
    assert_in_range(decision.wait_ms, 8500, 8501);
    sim_log_drop(&run.log);
}

static void a_smaller_limit_waits_for_the_youngest_that_fit(void **state)
{
    static const rlr_limit_t before = {10, 10};
    static const rlr_limit_t after = {4, 10};
    rlr_window_decision_t decision;
    run_t run;

    start(&run, before, 0);
    for (int i = 0; i < 10; i++) {
        assert_true(admit(&run, &decision));
        run.time.us += 500000;
    }
    change_limit(&run, after);
    assert_false(admit(&run, &decision));
    /* Four are left, made at 3, 3.5, 4 and 4.5 s; it is 5 s. */
    assert_int_equal(decision.wait_ms, 8000);
    run.time.us += 8000000;
    assert_true(admit(&run, &decision));
    assert_false(admit(&run, &decision));
    sim_log_drop(&run.log);
}

/* The time of the admission with `younger` ones after it. */
static uint32_t get_time(const rlr_window_copy_t *copy, uint32_t younger)
{
    return copy->marks[(copy->count - 1 - younger) / copy->per_mark];
}

static rlr_window_copy_t make_copy(uint64_t *seed)
{
    rlr_limit_t limit = choose_limit(seed);
    rlr_window_copy_t copy = {0, (limit.count + 63) / 64, {0}};
    uint32_t time = 0xfffff000U + (uint32_t)(sim_random(seed) % 0x2000);

    copy.count = (uint32_t)(sim_random(seed) % (limit.count + 1));
    for (uint32_t i = 0; i * copy.per_mark < copy.count; i++) {
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
        assert_int_equal(fitted.per_mark, (limit.count + 63) / 64);
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
static void make_full(run_t *run)
{
    static const rlr_limit_t limit = {100, 10};
    rlr_window_decision_t decision;

    start(run, limit, 3);
    for (int i = 0; i < 100; i++) {
        assert_true(admit(run, &decision));
        run->time.us += 10000;
    }
}

static void assert_full_until_its_time(run_t *run, uint32_t longest_ms)
{
    rlr_window_decision_t decision;

    assert_null(rlr_window_validate(&run->window, &run->clock));
    assert_false(admit(run, &decision));
    assert_in_range(decision.wait_ms, 9000, longest_ms);
    run->time.us += decision.wait_ms * 1000ULL;
    assert_true(admit(run, &decision));
    sim_log_drop(&run->log);
}

static void a_closed_window_does_not_decide_and_is_live(void **state)
{
    rlr_window_copy_t copy;
    rlr_window_decision_t decision;
    run_t run;

    make_full(&run);
    rlr_window_close(&copy, &run.window, 0, false, &run.clock);
    assert_int_equal(copy.count, 100);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rlr_window_admit(&run.window, SIM_OWNER, run.limit,
                                          100, &run.clock, &decision),
                         RLR_WINDOW_CHANGED);
        assert_int_equal(rlr_window_peek(&run.window, SIM_OWNER, run.limit, 100,
                                         &run.clock, &decision),
                         RLR_WINDOW_CHANGED);
        assert_false(rlr_window_reset(&run.window, SIM_OWNER));
        assert_true(rlr_window_is_live(&run.window, &run.clock));
        rlr_window_begin(&run.window, &copy, &run.clock);
    }
    assert_false(rlr_window_copy(&copy, &run.window, 0, &run.clock));
    assert_int_equal(copy.count, 0);
    sim_log_drop(&run.log);
}

static void death_after_close_changes_nothing(void **state)
{
    rlr_window_copy_t copy;
    run_t run;

    make_full(&run);
    rlr_window_close(&copy, &run.window, 0, false, &run.clock);
    rlr_window_repair(&run.window);
    assert_full_until_its_time(&run, 9031);
}

static void death_while_writing_keeps_every_admission(void **state)
{
    rlr_window_copy_t copy;
    run_t run;

    for (int written = 0; written < 50; written++) {
        make_full(&run);
        rlr_window_close(&copy, &run.window, 0, false, &run.clock);
        rlr_window_begin(&run.window, &copy, &run.clock);
        for (int i = 0; i < written; i++) {
            run.window.marks[i] = copy.marks[i];
        }
        run.time.us += 50000;
        rlr_window_repair(&run.window);
        /* All of them at the time of the youngest. */
        assert_full_until_its_time(&run, 9951);
    }
}

static void death_between_two_limits_keeps_every_admission(void **state)
{
    static const rlr_limit_t smaller = {20, 10};
    rlr_window_copy_t copy;
    run_t run;

    make_full(&run);
    rlr_window_close(&copy, &run.window, 0, false, &run.clock);
    rlr_window_copy_fit(&copy, NULL, smaller);
    rlr_window_begin(&run.window, &copy, &run.clock);
    run.window.limit = (uint64_t)smaller.interval_sec << 32 | smaller.count;
    run.limit = smaller;
    rlr_window_repair(&run.window);
    assert_full_until_its_time(&run, 9991);
}

static void a_window_closed_by_a_death_weeks_ago_is_empty(void **state)
{
    rlr_window_decision_t decision;
    rlr_window_copy_t copy;
    run_t run;

    for (int begun = 0; begun < 2; begun++) {
        make_full(&run);
        rlr_window_close(&copy, &run.window, 0, false, &run.clock);
        if (begun) {
            rlr_window_begin(&run.window, &copy, &run.clock);
        }
        run.time.us += (1ULL << 32) * 1000;
        rlr_window_repair(&run.window);
        assert_false(rlr_window_is_live(&run.window, &run.clock));
        assert_true(admit(&run, &decision));
        assert_int_equal(decision.remaining, 99);
        sim_log_drop(&run.log);
    }
}

static void a_live_window_is_not_closed_for_another_owner(void **state)
{
    rlr_window_copy_t copy;
    run_t run;

    make_full(&run);
    assert_false(rlr_window_close(&copy, &run.window, 0, true, &run.clock));
    run.time.us += 9989000;
    assert_false(rlr_window_close(&copy, &run.window, 0, true, &run.clock));
    run.time.us += 2000;
    assert_true(rlr_window_close(&copy, &run.window, 0, true, &run.clock));
    assert_int_equal(copy.count, 0);
    sim_log_drop(&run.log);
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
