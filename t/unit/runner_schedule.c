/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/io/schedule.c */
/* Which transfer starts next. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "runners/builtin/io/schedule.h"

/* The defaults: runs of a process, and its transfers at once. */
#define RUNS  100
#define SLOTS 256
/* Transfers of a run that are not over (RUNNER_TOOL_ACTIVE_MAX). */
#define CALLS 16

typedef struct fixture_t {
    apr_pool_t *pool;
    runner_schedule_t *schedule;
} fixture_t;

static void make_schedule(fixture_t *fixture, int slots, int runs,
                          apr_pool_t *pool)
{
    fixture->pool = pool;
    fixture->schedule = runner_schedule_make(slots, runs, pool);
}

static runner_schedule_run_t *make_run(const fixture_t *fixture)
{
    runner_schedule_run_t *run = apr_palloc(fixture->pool, sizeof(*run));

    runner_schedule_init_run(run);
    return run;
}

/* Adds a transfer of the run to the host, and starts those that may start. */
static runner_schedule_entry_t *call(const fixture_t *fixture,
                                     runner_schedule_run_t *run,
                                     const char *host)
{
    runner_schedule_entry_t *entry = apr_pcalloc(fixture->pool, sizeof(*entry));
    runner_schedule_entry_t *next;

    entry->run = run;
    entry->host = runner_schedule_find_host(fixture->schedule, host);
    runner_schedule_add(fixture->schedule, entry);
    while ((next = runner_schedule_next(fixture->schedule)) != NULL) {
        runner_schedule_start(fixture->schedule, next);
    }
    return entry;
}

static bool is_active(const runner_schedule_entry_t *entry)
{
    return entry->queue == NULL;
}

/* Ends a transfer; returns the one that starts then. */
static runner_schedule_entry_t *end(const fixture_t *fixture,
                                    runner_schedule_entry_t *entry)
{
    runner_schedule_entry_t *next;

    runner_schedule_remove(fixture->schedule, entry);
    next = runner_schedule_next(fixture->schedule);
    if (next != NULL) {
        runner_schedule_start(fixture->schedule, next);
        assert_null(runner_schedule_next(fixture->schedule));
    }
    return next;
}

/* Makes runs with CALLS calls to a host; returns the number of active calls. */
static int flood(const fixture_t *fixture, int runs, const char *host)
{
    int active = 0;

    for (int i = 0; i < runs; i++) {
        runner_schedule_run_t *run = make_run(fixture);

        for (int j = 0; j < CALLS; j++) {
            active += is_active(call(fixture, run, host)) ? 1 : 0;
        }
    }
    return active;
}

static void the_calls_of_a_run_start_at_once(void **state)
{
    fixture_t fixture;

    make_schedule(&fixture, SLOTS, RUNS, *state);
    assert_int_equal(flood(&fixture, 7, "a"), 7 * CALLS);
}

static void the_first_call_of_each_run_starts_at_once(void **state)
{
    fixture_t fixture;

    make_schedule(&fixture, SLOTS, RUNS, *state);
    for (int i = 0; i < RUNS; i++) {
        assert_true(flood(&fixture, 1, apr_psprintf(*state, "%d", i % 9)) >= 1);
    }
}

static void a_silent_host_leaves_slots_to_others(void **state)
{
    fixture_t fixture;
    int active;

    make_schedule(&fixture, SLOTS, RUNS, *state);
    active = flood(&fixture, RUNS / 2, "silent");
    assert_in_range(active, SLOTS / 2, SLOTS * 3 / 4);
    assert_int_equal(flood(&fixture, 1, "other"), CALLS);
}

static void the_calls_of_a_run_to_another_host_do_not_wait(void **state)
{
    runner_schedule_run_t *run;
    fixture_t fixture;

    make_schedule(&fixture, SLOTS, RUNS, *state);
    flood(&fixture, RUNS / 2, "silent");
    run = make_run(&fixture);
    assert_true(is_active(call(&fixture, run, "silent")));
    assert_false(is_active(call(&fixture, run, "silent")));
    assert_true(is_active(call(&fixture, run, "other")));
}

static void several_silent_hosts_leave_slots_to_others(void **state)
{
    fixture_t fixture;

    make_schedule(&fixture, SLOTS, RUNS, *state);
    flood(&fixture, RUNS / 4, "silent");
    flood(&fixture, RUNS / 4, "slow");
    assert_true(flood(&fixture, 1, "other") > 1);
}

static void a_run_continues_with_its_own_slot(void **state)
{
    runner_schedule_entry_t *first;
    runner_schedule_entry_t *second;
    runner_schedule_run_t *run;
    fixture_t fixture;

    make_schedule(&fixture, SLOTS, RUNS, *state);
    flood(&fixture, RUNS / 2, "silent");
    run = make_run(&fixture);
    first = call(&fixture, run, "silent");
    second = call(&fixture, run, "silent");
    assert_false(is_active(second));
    assert_ptr_equal(end(&fixture, first), second);
}

static void runs_take_turns_at_a_host(void **state)
{
    runner_schedule_entry_t *active[16];
    runner_schedule_entry_t *waiting[2][2];
    runner_schedule_entry_t *next;
    fixture_t fixture;

    make_schedule(&fixture, 16, 0, *state);
    for (int i = 0; i < 16; i++) {
        active[i] = call(&fixture, make_run(&fixture), i < 8 ? "a" : "b");
    }
    for (int i = 0; i < 2; i++) {
        waiting[i][0] = call(&fixture, active[i]->run, "a");
        waiting[i][1] = call(&fixture, active[i]->run, "a");
    }
    for (int i = 8; i < 16; i++) {
        runner_schedule_remove(fixture.schedule, active[i]);
    }
    for (int i = 0; i < 4; i++) {
        next = runner_schedule_next(fixture.schedule);
        assert_ptr_equal(next, waiting[i % 2][i / 2]);
        runner_schedule_start(fixture.schedule, next);
    }
}

static void a_run_without_an_active_call_goes_first(void **state)
{
    runner_schedule_entry_t *active[4];
    runner_schedule_entry_t *waiting;
    runner_schedule_entry_t *other;
    fixture_t fixture;

    make_schedule(&fixture, 4, RUNS, *state);
    for (int i = 0; i < 4; i++) {
        active[i] = call(&fixture, make_run(&fixture),
                         apr_psprintf(*state, "%d", i));
        assert_true(is_active(active[i]));
    }
    waiting = call(&fixture, active[3]->run, "a");
    other = call(&fixture, make_run(&fixture), "a");
    assert_ptr_equal(end(&fixture, active[0]), other);
    assert_ptr_equal(end(&fixture, active[1]), waiting);
}

static void a_waiting_call_may_be_removed(void **state)
{
    runner_schedule_entry_t *entries[4];
    runner_schedule_run_t *run;
    fixture_t fixture;

    make_schedule(&fixture, 1, RUNS, *state);
    run = make_run(&fixture);
    for (int i = 0; i < 4; i++) {
        entries[i] = call(&fixture, run, i % 2 == 0 ? "a" : "b");
    }
    assert_true(is_active(entries[0]));
    assert_null(end(&fixture, entries[1]));
    assert_null(end(&fixture, entries[2]));
    assert_ptr_equal(end(&fixture, entries[0]), entries[3]);
    assert_null(end(&fixture, entries[3]));
}

static void every_call_starts(void **state)
{
    runner_schedule_entry_t *entries[RUNS * CALLS];
    runner_schedule_run_t *runs[RUNS];
    fixture_t fixture;
    int left = RUNS * CALLS;

    make_schedule(&fixture, 20, RUNS, *state);
    for (int i = 0; i < RUNS; i++) {
        runs[i] = make_run(&fixture);
    }
    for (int i = 0; i < left; i++) {
        entries[i] = call(&fixture, runs[i % RUNS],
                          apr_psprintf(*state, "%d", i * 7 % 5));
    }
    while (left > 0) {
        int before = left;

        for (int i = 0; i < RUNS * CALLS; i++) {
            if (entries[i] != NULL && is_active(entries[i])) {
                runner_schedule_entry_t *next;

                runner_schedule_remove(fixture.schedule, entries[i]);
                entries[i] = NULL;
                left--;
                while ((next = runner_schedule_next(fixture.schedule))
                       != NULL) {
                    runner_schedule_start(fixture.schedule, next);
                }
            }
        }
        assert_true(left < before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_calls_of_a_run_start_at_once),
        CHECK_TEST(the_first_call_of_each_run_starts_at_once),
        CHECK_TEST(a_silent_host_leaves_slots_to_others),
        CHECK_TEST(the_calls_of_a_run_to_another_host_do_not_wait),
        CHECK_TEST(several_silent_hosts_leave_slots_to_others),
        CHECK_TEST(a_run_continues_with_its_own_slot),
        CHECK_TEST(runs_take_turns_at_a_host),
        CHECK_TEST(a_run_without_an_active_call_goes_first),
        CHECK_TEST(a_waiting_call_may_be_removed),
        CHECK_TEST(every_call_starts),
    };

    return CHECK_RUN(tests);
}
