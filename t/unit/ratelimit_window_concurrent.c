/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/window.c */
/* OBJECTS: ../mod_ratelimit_regional/counter/window_rebuild.c */
/* Not under valgrind: its threads spin. */
/* Eight workers on one window: threads, processes, killed processes. Every
 * decision is logged and checked afterwards. */
#include "check.h"

#include "ratelimit_workers.h"
#include "ratelimit_sim.h"

#define START_US 1000000000ULL

/* A decision with the times of the call and the return. */
typedef struct call_t {
    uint64_t call_us;
    uint64_t at_ms; /* 0: none, the worker was killed */
    uint64_t return_us;
    bool admitted;
} call_t;

typedef struct shared_t {
    rlr_window_t window;
    workers_clock_t clock;
    rlr_limit_t limit;
    uint64_t step_us;     /* time advances by up to this before each request */
    bool admissions_only; /* in the log */
    uint32_t each;        /* decisions that a worker logs before it ends */
    _Atomic uint32_t logged[WORKERS];
    call_t calls[];
} shared_t;

static void admit_concurrently(void *baton, int worker)
{
    shared_t *shared = baton;
    rlr_clock_t clock = {workers_read, &shared->clock};
    call_t *calls = &shared->calls[(size_t)worker * shared->each];
    uint64_t seed = (uint64_t)worker * 77 + 1;
    rlr_window_decision_t decision;

    /* A worker that replaces a killed one continues after its decisions. */
    while (shared->logged[worker] < shared->each) {
        call_t *call = &calls[shared->logged[worker]];

        call->call_us = atomic_fetch_add(
            &shared->clock.us, sim_random(&seed) % (shared->step_us + 1));
        if (rlr_window_admit(&shared->window, SIM_OWNER, shared->limit,
                             shared->limit.count, &clock, &decision)
            != RLR_WINDOW_DECIDED) {
            _exit(3);
        }
        call->admitted = decision.admitted;
        call->return_us = atomic_load(&shared->clock.us);
        call->at_ms = decision.at_ms;
        shared->logged[worker] += decision.admitted || !shared->admissions_only;
    }
}

/* About eight times the limit of requests. */
static shared_t *make_shared(rlr_limit_t limit, uint32_t each)
{
    uint64_t step_us = 1000000ULL * limit.interval_sec / (4 * limit.count);
    rlr_clock_t clock = {workers_read, NULL};
    shared_t *shared;

    each = each > 4 * limit.count ? each : 4 * limit.count;
    shared = workers_share(sizeof(shared_t)
                           + sizeof(call_t) * WORKERS * (size_t)each);
    clock.baton = &shared->clock;
    shared->clock.us = START_US;
    shared->limit = limit;
    shared->each = each;
    shared->step_us = step_us;
    sim_build(&shared->window, limit, &clock);
    return shared;
}

static void drop_shared(shared_t *shared)
{
    munmap(shared,
           sizeof(shared_t) + sizeof(call_t) * WORKERS * (size_t)shared->each);
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* A time of each admission, sorted. */
static uint64_t *sort_admissions(const shared_t *shared, size_t field,
                                 size_t *count)
{
    size_t all = (size_t)shared->each * WORKERS;
    uint64_t *sorted = malloc(all * sizeof(*sorted));

    *count = 0;
    for (size_t i = 0; i < all; i++) {
        const call_t *call = &shared->calls[i];

        if (call->at_ms != 0 && call->admitted) {
            memcpy(&sorted[(*count)++], (const char *)call + field,
                   sizeof(*sorted));
        }
    }
    qsort(sorted, *count, sizeof(*sorted), compare_numbers);
    return sorted;
}

static size_t count_above(const uint64_t *sorted, size_t count, uint64_t limit)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (sorted[middle] > limit) {
            high = middle;
        }
        else {
            low = middle + 1;
        }
    }
    return count - low;
}

/* At most the limit in every interval. */
static void verify_admissions(const shared_t *shared)
{
    uint64_t interval_ms = shared->limit.interval_sec * 1000ULL;
    size_t limit = shared->limit.count;
    size_t over = 0;
    size_t count;
    uint64_t *times = sort_admissions(shared, offsetof(call_t, at_ms), &count);

    assert_true(count > 3 * limit);
    for (size_t i = limit; i < count; i++) {
        over += times[i] - times[i - limit] < interval_ms;
    }
    free(times);
    assert_int_equal(over, 0);
}

/* The time of a decision lies between the call and the return, apart from
 * rounding. */
static void verify_times(const shared_t *shared)
{
    for (size_t i = 0; i < (size_t)shared->each * WORKERS; i++) {
        const call_t *call = &shared->calls[i];

        if (call->at_ms != 0) {
            assert_true(call->at_ms >= call->call_us / 1000);
            assert_true(call->at_ms <= call->return_us / 1000 + 1);
        }
    }
}

/* For each refusal, enough admissions may have counted at some time during the
 * call. */
static void verify_refusals(const shared_t *shared)
{
    uint64_t interval_us = shared->limit.interval_sec * 1000000ULL;
    size_t per_mark = (shared->limit.count + 63) / 64;
    size_t refusals = 0;
    size_t false_refusals = 0;
    size_t count;
    uint64_t *return_times = sort_admissions(
        shared, offsetof(call_t, return_us), &count);
    uint64_t *call_times = sort_admissions(shared, offsetof(call_t, call_us),
                                           &count);

    for (size_t i = 0; i < (size_t)shared->each * WORKERS; i++) {
        const call_t *call = &shared->calls[i];

        if (!call->admitted) {
            size_t held = count_above(return_times, count,
                                      call->call_us - interval_us - 2000)
                - count_above(call_times, count, call->return_us);

            refusals++;
            false_refusals += held < shared->limit.count - (per_mark - 1);
        }
    }
    free(return_times);
    free(call_times);
    assert_true(refusals > 100);
    assert_int_equal(false_refusals, 0);
}

static const rlr_limit_t limits[] = {{1, 10},   {15, 10},  {64, 10},
                                     {100, 60}, {300, 10}, {5000, 60}};

#define LIMITS (sizeof(limits) / sizeof(limits[0]))

static uint32_t get_share(void)
{
    return (uint32_t)(30000 * sim_effort()) + 8000;
}

static void threads_together_get_exactly_the_limit(void **state)
{
    for (size_t i = 0; i < LIMITS; i++) {
        shared_t *shared = make_shared(limits[i], get_share());

        workers_run_threads(admit_concurrently, shared);
        verify_times(shared);
        verify_admissions(shared);
        verify_refusals(shared);
        drop_shared(shared);
    }
}

static void processes_together_get_exactly_the_limit(void **state)
{
    for (size_t i = 0; i < LIMITS; i++) {
        shared_t *shared = make_shared(limits[i], get_share());

        assert_int_equal(
            workers_run_processes(admit_concurrently, shared, 0, i), 0);
        verify_times(shared);
        verify_admissions(shared);
        verify_refusals(shared);
        drop_shared(shared);
    }
}

static void a_stopped_clock_admits_the_limit_once(void **state)
{
    for (size_t i = 0; i < LIMITS; i++) {
        shared_t *shared = make_shared(limits[i], 2000);
        size_t count;

        shared->step_us = 0;
        workers_run_threads(admit_concurrently, shared);
        free(sort_admissions(shared, offsetof(call_t, at_ms), &count));
        assert_int_equal(count, limits[i].count);
        drop_shared(shared);
    }
}

static void killed_processes_admit_no_more_than_the_limit(void **state)
{
    int kills = (int)(60 * sim_effort()) + 10;

    for (size_t i = 0; i < LIMITS; i++) {
        shared_t *shared = make_shared(limits[i], get_share());
        rlr_clock_t clock = {workers_read, &shared->clock};
        rlr_window_decision_t decision;

        shared->admissions_only = true;
        assert_true(
            workers_run_processes(admit_concurrently, shared, kills, i + 1)
            > kills / 20);
        verify_times(shared);
        verify_admissions(shared);
        assert_null(rlr_window_validate(&shared->window, &clock));
        /* No request is refused for longer than necessary. */
        shared->clock.us += limits[i].interval_sec * 1000000ULL + 2000;
        rlr_window_admit(&shared->window, SIM_OWNER, limits[i], limits[i].count,
                         &clock, &decision);
        assert_true(decision.admitted);
        assert_int_equal(decision.remaining, limits[i].count - 1);
        drop_shared(shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(threads_together_get_exactly_the_limit),
        CHECK_TEST(processes_together_get_exactly_the_limit),
        CHECK_TEST(a_stopped_clock_admits_the_limit_once),
        CHECK_TEST(killed_processes_admit_no_more_than_the_limit)};

    return CHECK_RUN(tests);
}
