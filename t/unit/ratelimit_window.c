/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/window.c */
/* OBJECTS: ../mod_ratelimit_regional/counter/window_rebuild.c */
/* A window against an exact log, under arrivals that break common limiters. */
#include "check.h"

#include "ratelimit_sim.h"

#define DAY_US  (86400 * 1000000ULL)
#define WRAP_US ((1ULL << 32) * 1000)

/* A run of arrivals against a window. */
typedef struct run_t {
    rlr_window_t window;
    rlr_limit_t limit;
    sim_time_t time;
    rlr_clock_t clock;
    sim_log_t log;
    uint64_t seed;
    uint32_t wait_ms; /* 0 after an admission */
} run_t;

static void start_run(run_t *run, uint32_t count, uint32_t interval_sec,
                      uint64_t start_us)
{
    memset(run, 0, sizeof(*run));
    run->limit.count = count;
    run->limit.interval_sec = interval_sec;
    run->time.us = start_us;
    run->clock.read = sim_read;
    run->clock.baton = &run->time;
    run->seed = start_us ^ 0x9e3779b97f4a7c15U;
    sim_log_make(&run->log, count);
    sim_build(&run->window, run->limit, &run->clock);
}

static void end_run(run_t *run)
{
    assert_null(rlr_window_validate(&run->window, &run->clock));
    sim_log_drop(&run->log);
}

static uint64_t get_interval_us(const run_t *run)
{
    return run->limit.interval_sec * 1000000ULL;
}

/* Whether the window admits at this time, in milliseconds from now. */
static bool would_admit(run_t *run, uint64_t after_ms)
{
    sim_time_t later = {run->time.us + after_ms * 1000};
    rlr_clock_t clock = {sim_read, &later};
    rlr_window_decision_t decision;

    assert_int_equal(rlr_window_peek(&run->window, SIM_OWNER, run->limit,
                                     run->limit.count, &clock, &decision),
                     RLR_WINDOW_DECIDED);
    return decision.admitted;
}

/* One request, checked by the log: at most the limit in any interval, a
 * refusal only if the interval is full but for a part of a mark, and an exact
 * wait. */
static bool request(run_t *run)
{
    uint32_t per_mark = (run->limit.count + 63) / 64;
    uint64_t now = run->time.us;
    uint64_t oldest = sim_log_at(&run->log, run->limit.count - 1);
    rlr_window_decision_t decision;

    assert_int_equal(rlr_window_admit(&run->window, SIM_OWNER, run->limit,
                                      run->limit.count, &run->clock, &decision),
                     RLR_WINDOW_DECIDED);
    run->wait_ms = decision.wait_ms;
    if (decision.admitted) {
        assert_true(run->log.total < run->limit.count
                    || now - oldest >= get_interval_us(run));
        sim_log_add(&run->log, now);
        assert_int_equal(decision.wait_ms, 0);
        assert_true(decision.remaining < run->limit.count);
        return true;
    }
    /* 2 ms: marks are rounded up, their ages down. */
    assert_true(sim_log_has(&run->log, run->limit.count - (per_mark - 1),
                            now < get_interval_us(run) + 2000
                                ? 0
                                : now - get_interval_us(run) - 2000));
    assert_int_equal(decision.remaining, 0);
    assert_true(decision.wait_ms > 0);
    assert_true(would_admit(run, decision.wait_ms));
    assert_false(would_admit(run, decision.wait_ms - 1));
    return false;
}

/* Microseconds until the next request of a pattern. */
typedef uint64_t (*arrivals_t)(run_t *run, uint64_t index);

static uint64_t arrive_at_three_times_the_rate(run_t *run, uint64_t index)
{
    return get_interval_us(run) / (3ULL * run->limit.count);
}

static uint64_t arrive_just_above_the_rate(run_t *run, uint64_t index)
{
    return get_interval_us(run) * 100 / (102ULL * run->limit.count);
}

static uint64_t arrive_at_the_rate(run_t *run, uint64_t index)
{
    return get_interval_us(run) / run->limit.count;
}

static uint64_t arrive_without_pause(run_t *run, uint64_t index)
{
    return get_interval_us(run) / (40ULL * run->limit.count) + 1;
}

/* Half of the arrivals just before each multiple of the interval, half just
 * after it: twice the count for a window that is aligned to the clock. */
static uint64_t arrive_around_the_border(run_t *run, uint64_t index)
{
    uint64_t burst = index % (3ULL * run->limit.count);

    if (burst == 0) {
        return get_interval_us(run) - run->time.us % get_interval_us(run)
            + get_interval_us(run) - 1500;
    }
    return burst == 3ULL * run->limit.count / 2 ? 2500 : 0;
}

/* All at the end of an interval, then a steady rate: twice the limit for two
 * weighted buckets. */
static uint64_t arrive_late_then_trickle(run_t *run, uint64_t index)
{
    uint64_t phase = index % (6ULL * run->limit.count);

    if (phase == 0) {
        return get_interval_us(run) * 2 - run->time.us % get_interval_us(run)
            - 700;
    }
    return phase < run->limit.count
        ? 0
        : get_interval_us(run) / (4ULL * run->limit.count) + 1;
}

/* The limit at once, then at the refill rate of a bucket. */
static uint64_t arrive_at_once_then_refill(run_t *run, uint64_t index)
{
    uint64_t phase = index % (2ULL * run->limit.count + 2);

    if (phase == 0) {
        return 3 * get_interval_us(run);
    }
    return phase <= run->limit.count ? 0
                                     : get_interval_us(run) / run->limit.count;
}

static uint64_t arrive_at_random(run_t *run, uint64_t index)
{
    return sim_random(&run->seed)
        % (2 * get_interval_us(run) / (2ULL * run->limit.count) + 2);
}

static uint64_t arrive_in_random_bursts(run_t *run, uint64_t index)
{
    if (sim_random(&run->seed) % (run->limit.count / 2 + 1) != 0) {
        return sim_random(&run->seed) % 3;
    }
    return sim_random(&run->seed) % (get_interval_us(run) * 3 / 2);
}

/* Returns after the wait, to the millisecond, else at once. */
static uint64_t arrive_after_the_wait(run_t *run, uint64_t index)
{
    return run->wait_ms * 1000ULL;
}

static uint64_t arrive_in_half_windows(run_t *run, uint64_t index)
{
    if (index % (run->limit.count / 2 + 1) != 0) {
        return 0;
    }
    return get_interval_us(run) / 2 - 1000 + sim_random(&run->seed) % 2000;
}

/* Slightly late and slightly early in turn, around one interval. */
static uint64_t arrive_once_an_interval(run_t *run, uint64_t index)
{
    return get_interval_us(run) - 1500 + sim_random(&run->seed) % 3000;
}

static const arrivals_t patterns[] = {arrive_at_three_times_the_rate,
                                      arrive_just_above_the_rate,
                                      arrive_at_the_rate,
                                      arrive_without_pause,
                                      arrive_around_the_border,
                                      arrive_late_then_trickle,
                                      arrive_at_once_then_refill,
                                      arrive_at_random,
                                      arrive_in_random_bursts,
                                      arrive_after_the_wait,
                                      arrive_in_half_windows,
                                      arrive_once_an_interval};

#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

static void run_pattern(arrivals_t arrive, uint32_t count,
                        uint32_t interval_sec, uint64_t start_us,
                        uint64_t requests)
{
    run_t run;

    start_run(&run, count, interval_sec, start_us);
    for (uint64_t i = 0; i < requests; i++) {
        run.time.us += arrive(&run, i);
        request(&run);
    }
    end_run(&run);
}

/* Every pattern, from different offsets to the interval. */
static void run_patterns(uint32_t count, uint32_t interval_sec, int phases)
{
    uint64_t requests = 12ULL * count + 2000;
    uint64_t interval_us = interval_sec * 1000000ULL;

    requests = requests < 150000 ? requests : 150000;
    requests = (uint64_t)((double)requests * sim_effort_alone()) + 100;
    for (size_t i = 0; i < PATTERNS; i++) {
        for (int phase = 0; phase < phases; phase++) {
            run_pattern(patterns[i], count, interval_sec,
                        DAY_US + interval_us * (uint64_t)phase / 7 + phase,
                        requests);
        }
    }
}

static void small_limits_are_exact(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, 10, 15, 20, 30, 63, 64};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        run_patterns(counts[i], 10, 8);
    }
    run_patterns(30, 3600, 8);
    run_patterns(10, 60, 8);
}

static void large_limits_are_exact_to_a_group(void **state)
{
    static const uint32_t counts[] = {65,   100,  127,  128,  300,  750,
                                      1000, 2000, 5000, 6000, 10000};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        run_patterns(counts[i], 10, 4);
    }
    run_patterns(750, 600, 4);
    run_patterns(10000, 60, 2);
}

static void the_largest_and_longest_limits_hold(void **state)
{
    run_patterns(1, 1, 8);
    run_patterns(1, RLR_LIMIT_INTERVAL_SEC_MAX, 8);
    run_patterns(100000, 1, 1);
    run_patterns(7, RLR_LIMIT_INTERVAL_SEC_MAX, 4);
    run_pattern(arrive_without_pause, RLR_LIMIT_COUNT_MAX,
                RLR_LIMIT_INTERVAL_SEC_MAX, DAY_US,
                (uint64_t)(2200000 * sim_effort_alone()));
}

static void counts_persist_when_the_time_wraps(void **state)
{
    static const uint32_t counts[] = {1, 15, 64, 300};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (size_t j = 0; j < PATTERNS; j++) {
            run_pattern(patterns[j], counts[i], 10,
                        WRAP_US - 10000000 * (j % 3 + 1), 2000);
            run_pattern(patterns[j], counts[i], 3600,
                        5 * WRAP_US - 3600000000ULL * (j % 2 + 1), 2000);
        }
    }
}

static void a_window_unused_over_several_wraps_is_empty(void **state)
{
    static const uint64_t extra_us[] = {0, 1, 1000, 5000000, 9999000};
    run_t run;

    /* Four years, after which eras recur. */
    for (uint64_t rounds = 1; rounds < 32; rounds++) {
        for (size_t i = 0; i < sizeof(extra_us) / sizeof(extra_us[0]); i++) {
            start_run(&run, 5, 10, 3 * DAY_US + rounds * 12345);
            for (int j = 0; j < 5; j++) {
                assert_true(request(&run));
            }
            assert_false(request(&run));
            run.time.us += rounds * WRAP_US + extra_us[i];
            assert_true(request(&run));
            end_run(&run);
        }
    }
}

/* Ring entries keep times of earlier weeks, some of which look like the future
 * when they are reused. */
static void a_key_used_rarely_for_years_is_not_refused(void **state)
{
    static const uint32_t counts[] = {1, 20, 64, 640};
    run_t run;

    for (size_t i = 0; i < 40; i++) {
        uint32_t count = counts[i % 4];
        uint64_t longest_us = DAY_US * (i < 20 ? 3 : 60);

        start_run(&run, count, i % 3 == 0 ? 3600 : 10, DAY_US + i);
        for (int j = 0; j < 1500; j++) {
            uint64_t burst = sim_random(&run.seed) % 8 == 0 ? count + 5 : 1;

            run.time.us += sim_random(&run.seed) % longest_us;
            for (uint64_t k = 0; k < burst; k++) {
                run.time.us += sim_random(&run.seed) % 2000;
                request(&run);
            }
        }
        end_run(&run);
    }
}

static bool request_at(run_t *run, uint64_t us)
{
    rlr_window_decision_t decision;

    run->time.us = us;
    rlr_window_admit(&run->window, SIM_OWNER, run->limit, run->limit.count,
                     &run->clock, &decision);
    return decision.admitted;
}

/* The second of two admissions has a clock that is behind; it must not drop
 * the first one, which is a millisecond later. */
static void clocks_of_processors_may_differ_by_a_tick(void **state)
{
    run_t run;

    start_run(&run, 2, 10, DAY_US);
    assert_true(request_at(&run, DAY_US + 250));
    assert_true(request_at(&run, DAY_US - 500));
    assert_false(request_at(&run, DAY_US + 10000000));
    assert_true(request_at(&run, DAY_US + 10001000));
    assert_true(request_at(&run, DAY_US + 10001000));
    end_run(&run);
}

static void a_refusal_writes_nothing(void **state)
{
    rlr_window_t before;
    run_t run;

    start_run(&run, 300, 10, DAY_US);
    while (request(&run)) {
        run.time.us += 100;
    }
    for (int i = 0; i < 1000; i++) {
        run.time.us += 1000;
        memcpy(&before, &run.window, sizeof(before));
        assert_false(request(&run));
        assert_memory_equal(&before, &run.window, sizeof(before));
    }
    end_run(&run);
}

static void remaining_decreases_and_reset_is_when_it_grows(void **state)
{
    rlr_window_decision_t decision;
    run_t run;

    start_run(&run, 3, 10, DAY_US);
    for (uint32_t i = 0; i < 3; i++) {
        rlr_window_peek(&run.window, SIM_OWNER, run.limit, 3, &run.clock,
                        &decision);
        assert_int_equal(decision.remaining, 3 - i);
        assert_int_equal(decision.reset_ms, i == 0 ? 0 : 10000 - 2000 * i);
        rlr_window_admit(&run.window, SIM_OWNER, run.limit, 3, &run.clock,
                         &decision);
        assert_int_equal(decision.remaining, 2 - i);
        assert_int_equal(decision.reset_ms, 10000 - 2000 * i);
        run.time.us += 2000000;
    }
    rlr_window_admit(&run.window, SIM_OWNER, run.limit, 3, &run.clock,
                     &decision);
    assert_false(decision.admitted);
    assert_int_equal(decision.wait_ms, 4000);
    assert_int_equal(decision.reset_ms, 4000);
    assert_int_equal(decision.at_ms, run.time.us / 1000);
    end_run(&run);
}

static void a_lower_cap_refuses_earlier_with_its_own_wait(void **state)
{
    rlr_window_decision_t decision;
    run_t run;

    start_run(&run, 10, 10, DAY_US);
    for (int i = 0; i < 6; i++) {
        rlr_window_admit(&run.window, SIM_OWNER, run.limit, 10, &run.clock,
                         &decision);
        run.time.us += 1000000;
    }
    rlr_window_admit(&run.window, SIM_OWNER, run.limit, 4, &run.clock,
                     &decision);
    assert_false(decision.admitted);
    /* The third of six must expire: its mark is at 2 s, and it is 6 s. */
    assert_int_equal(decision.wait_ms, 6000);
    run.time.us += decision.wait_ms * 1000ULL;
    rlr_window_admit(&run.window, SIM_OWNER, run.limit, 4, &run.clock,
                     &decision);
    assert_true(decision.admitted);
    assert_int_equal(decision.remaining, 0);
    end_run(&run);
}

static void a_reset_empties_the_window(void **state)
{
    run_t run;

    start_run(&run, 100, 10, DAY_US);
    for (int i = 0; i < 100; i++) {
        assert_true(request(&run));
    }
    assert_false(request(&run));
    assert_false(rlr_window_reset(&run.window, SIM_OWNER + 1));
    assert_false(request(&run));
    assert_true(rlr_window_reset(&run.window, SIM_OWNER));
    run.log.total = 0;
    for (int i = 0; i < 100; i++) {
        assert_true(request(&run));
    }
    assert_false(request(&run));
    end_run(&run);
}

static void another_owner_or_limit_gets_no_decision(void **state)
{
    static const rlr_limit_t other_count = {11, 10};
    static const rlr_limit_t other_interval = {10, 11};
    rlr_window_decision_t decision;
    run_t run;

    start_run(&run, 10, 10, DAY_US);
    assert_int_equal(rlr_window_admit(&run.window, SIM_OWNER + 1, run.limit, 10,
                                      &run.clock, &decision),
                     RLR_WINDOW_CHANGED);
    assert_int_equal(rlr_window_admit(&run.window, SIM_OWNER, other_count, 10,
                                      &run.clock, &decision),
                     RLR_WINDOW_CHANGED);
    assert_int_equal(rlr_window_peek(&run.window, SIM_OWNER, other_interval, 10,
                                     &run.clock, &decision),
                     RLR_WINDOW_CHANGED);
    end_run(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(small_limits_are_exact),
        CHECK_TEST(large_limits_are_exact_to_a_group),
        CHECK_TEST(the_largest_and_longest_limits_hold),
        CHECK_TEST(counts_persist_when_the_time_wraps),
        CHECK_TEST(a_window_unused_over_several_wraps_is_empty),
        CHECK_TEST(a_key_used_rarely_for_years_is_not_refused),
        CHECK_TEST(clocks_of_processors_may_differ_by_a_tick),
        CHECK_TEST(a_refusal_writes_nothing),
        CHECK_TEST(remaining_decreases_and_reset_is_when_it_grows),
        CHECK_TEST(a_lower_cap_refuses_earlier_with_its_own_wait),
        CHECK_TEST(a_reset_empties_the_window),
        CHECK_TEST(another_owner_or_limit_gets_no_decision)};

    return CHECK_RUN(tests);
}
