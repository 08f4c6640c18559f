/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: wait/waiter_registry.c core/lock.c */
/* OBJECTS: wait/waiter.c */
/* OBJECTS: wait/waiter_table.c */
/* OBJECTS: wait/dispatch.c */
/* OBJECTS: wait/dispatch_queue.c */
/* OBJECTS: wait/listen.c */
/* OBJECTS: wait/updates.c wait/api_keys.c */
/* OBJECTS: wait/watch.c */
/* OBJECTS: wait/epoll.c */
/* OBJECTS: wait/timer.c */
/* OBJECTS: wait/client_address.c */
/* OBJECTS: wait/slot_share.c */
/* OBJECTS: core/allocator.c */
/* OBJECTS: core/id_list.c */
/* OBJECTS: core/child_thread.c */
/* OBJECTS: core/throttle.c */
/* OBJECTS: db/array.c */
/* OBJECTS: core/error.c core/limit.c */
/* The end of API keys, with a fake database and a clock that the test sets. */
#include "wait_fixture.h"

#include <sys/eventfd.h>

#include "../../mod_agent/core/clock.h"
#include "../../mod_agent/wait/api_keys.h"

/* Threads read it. */
static apr_time_t now = 1000000000;

apr_time_t agent_clock_boot_now(void)
{
    return __atomic_load_n(&now, __ATOMIC_SEQ_CST);
}

/* The two timers of the registry that was made last: descriptors, -1 without
 * such timers, times, and how often these were set. */
#define TIMERS 2
/* Opened first: that of the thread that asks the database. */
#define CHECK 1

static bool has_timers = true;
static int next_timer;
static apr_time_t timer_times[TIMERS];
static int timer_fds[TIMERS] = {-1, -1};
static int timer_settings[TIMERS];

int agent_clock_timer_open(void)
{
    next_timer = (next_timer + 1) % TIMERS;
    timer_times[next_timer] = AGENT_CLOCK_NEVER;
    timer_fds[next_timer] = has_timers ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
                                       : -1;
    return timer_fds[next_timer];
}

static void fire_due(int timer)
{
    if (__atomic_load_n(&timer_times[timer], __ATOMIC_SEQ_CST)
        <= agent_clock_boot_now()) {
        (void)!eventfd_write(timer_fds[timer], 1);
    }
}

bool agent_clock_timer_set(int fd, apr_time_t due)
{
    eventfd_t count;

    for (int i = 0; i < TIMERS && fd >= 0; i++) {
        if (timer_fds[i] == fd) {
            (void)!eventfd_read(fd, &count);
            __atomic_store_n(&timer_times[i], due, __ATOMIC_SEQ_CST);
            fire_due(i);
            __atomic_add_fetch(&timer_settings[i], 1, __ATOMIC_SEQ_CST);
            return true;
        }
    }
    return false;
}

/* As the suspension of the host does: no time-out of poll() becomes shorter. */
static void pass(apr_interval_time_t time)
{
    __atomic_add_fetch(&now, time, __ATOMIC_SEQ_CST);
    for (int i = 0; i < TIMERS; i++) {
        if (timer_fds[i] >= 0) {
            fire_due(i);
        }
    }
}

static bool has_asked(int number)
{
    return __atomic_load_n(&queries, __ATOMIC_SEQ_CST) >= number;
}

/* Fails if the thread finds nothing to ask at this time: the second turn from
 * here on has begun after this call. */
static void wait_for_query(const fixture_t *fixture, int number)
{
    for (int turn = 0; turn < 2 && !has_asked(number); turn++) {
        int seen = __atomic_load_n(&timer_settings[CHECK], __ATOMIC_SEQ_CST);

        agent_api_keys_interrupt(fixture->registry->api_keys);
        while (!has_asked(number)
               && __atomic_load_n(&timer_settings[CHECK], __ATOMIC_SEQ_CST)
                   == seen) {
            sched_yield();
        }
    }
    assert_true(has_asked(number));
}

/* Of a thread that blocks: no turn of it can take the reason before. */
static agent_waiter_t *register_with_key(const fixture_t *fixture,
                                         const agent_identity_t *identity)
{
    const agent_waiter_params_t params = {.key = RUN,
                                          .deployment_id = OTHER,
                                          .identity = identity,
                                          .client_fd = -1};
    agent_waiter_t *waiter = NULL;
    agent_error_t *err;

    assert_int_equal(agent_waiter_register(&waiter, fixture->registry, &params,
                                           &err, fixture->pool),
                     APR_SUCCESS);
    return waiter;
}

static void the_end_of_an_api_key_wakes_its_waiters(void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = 5,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    const agent_identity_t valid = {
        .key_id = "valid", .checked_at = now, .expires_at = AGENT_CLOCK_NEVER};
    const agent_identity_t ended = {.key_id = "ended",
                                    .checked_at = now - apr_time_from_sec(9),
                                    .expires_at = AGENT_CLOCK_NEVER};
    const agent_identity_t expired = {
        .key_id = "expired", .checked_at = now, .expires_at = now};
    fixture_t fixture;
    agent_waiter_t *waiters[5];

    next_result = (agent_db_result_t){.rows = 1, .cells = {{"ended"}}};
    open_fixture_with(&fixture, &limits);
    waiters[0] = register_with_key(&fixture, &valid);
    waiters[1] = register_with_key(&fixture, NULL);
    for (int i = 2; i < 4; i++) {
        waiters[i] = register_with_key(&fixture, &ended);
    }
    waiters[4] = register_with_key(&fixture, &expired);
    /* For a waiter that came after the question about its key. */
    pass(apr_time_from_sec(2));
    for (int i = 2; i < 5; i++) {
        assert_int_equal(agent_waiter_block(waiters[i], -1),
                         AGENT_REASON_KEY_INVALID);
        agent_waiter_unregister(waiters[i]);
    }
    assert_int_equal(agent_waiter_block(waiters[0], 0), AGENT_REASON_NONE);
    assert_int_equal(agent_waiter_block(waiters[1], 0), AGENT_REASON_NONE);
    apr_pool_destroy(fixture.pool);
}

/* Most test programs may open 1,024 files. */
#define MANY 400

/* For 6 s a key comes every 250 ms, which is due at once. */
static void keys_that_come_do_not_have_all_others_checked(void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = MANY + 24,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    agent_identity_t identities[MANY + 24];
    fixture_t fixture;

    next_result = (agent_db_result_t){.rows = 0};
    open_fixture_with(&fixture, &limits);
    elements = 0;
    queries = 0;
    memset(identities, 0, sizeof(identities));
    for (int i = 0; i < MANY + 24; i++) {
        snprintf(identities[i].key_id, sizeof(identities[i].key_id), "%d", i);
        identities[i].expires_at = AGENT_CLOCK_NEVER;
        if (i >= MANY) {
            pass(apr_time_from_msec(250));
        }
        identities[i].checked_at = now;
        if (i >= MANY) {
            identities[i].checked_at -= apr_time_from_msec(2500);
        }
        register_with_key(&fixture, &identities[i]);
        wait_for_query(&fixture, i < MANY ? 0 : i - MANY + 1);
    }
    /* Each of the first ones in four periods; the others fewer times. */
    assert_in_range(elements, 3 * MANY, 4 * (MANY + 24));
    assert_int_equal(queries, 24);
    apr_pool_destroy(fixture.pool);
}

/* Also where a pause of 250 ms comes before the statement. */
static void a_key_is_checked_again_within_2_seconds(void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = 1,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    const agent_identity_t identity = {
        .key_id = "key", .checked_at = now, .expires_at = AGENT_CLOCK_NEVER};
    fixture_t fixture;
    agent_waiter_t *waiter;

    next_result = (agent_db_result_t){.rows = 0};
    queries = 0;
    open_fixture_with(&fixture, &limits);
    waiter = register_with_key(&fixture, &identity);
    for (int i = 0; i < 3; i++) {
        pass(apr_time_from_msec(1750));
        wait_for_query(&fixture, i + 1);
    }
    assert_int_equal(queries, 3);
    agent_waiter_unregister(waiter);
    apr_pool_destroy(fixture.pool);
}

static void a_key_is_checked_again_at_once_that_got_no_connection(void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = 1,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    const agent_identity_t ended = {.key_id = "ended",
                                    .checked_at = now - apr_time_from_sec(9),
                                    .expires_at = AGENT_CLOCK_NEVER};
    fixture_t fixture;
    agent_waiter_t *waiter;

    next_result = (agent_db_result_t){.rows = 1, .cells = {{"ended"}}};
    query_error = AGENT_E_POOL_EXHAUSTED;
    queries = 0;
    open_fixture_with(&fixture, &limits);
    waiter = register_with_key(&fixture, &ended);
    wait_for_query(&fixture, 1);
    for (int i = 2; i < 5; i++) {
        pass(apr_time_from_msec(250));
        wait_for_query(&fixture, i);
    }
    assert_int_equal(agent_waiter_block(waiter, 0), AGENT_REASON_NONE);
    query_error = AGENT_E_COUNT;
    pass(apr_time_from_msec(250));
    assert_int_equal(agent_waiter_block(waiter, -1), AGENT_REASON_KEY_INVALID);
    agent_waiter_unregister(waiter);
    apr_pool_destroy(fixture.pool);
}

static void the_earliest_expiry_of_a_key_holds_without_a_database(void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = 2,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    const agent_identity_t first = {
        .key_id = "key", .checked_at = now, .expires_at = AGENT_CLOCK_NEVER};
    const agent_identity_t second = {
        .key_id = "key", .checked_at = now, .expires_at = now};
    fixture_t fixture;
    agent_waiter_t *waiters[2];

    query_error = AGENT_E_UNAVAILABLE;
    open_fixture_with(&fixture, &limits);
    waiters[0] = register_with_key(&fixture, &first);
    waiters[1] = register_with_key(&fixture, &second);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(agent_waiter_block(waiters[i], 10000),
                         AGENT_REASON_KEY_INVALID);
        agent_waiter_unregister(waiters[i]);
    }
    query_error = AGENT_E_COUNT;
    apr_pool_destroy(fixture.pool);
}

/* The waiter with which the key came leaves. */
static void the_expiry_of_a_key_stays_with_its_waiters(void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = 3,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    const agent_identity_t late = {
        .key_id = "key", .checked_at = now, .expires_at = AGENT_CLOCK_NEVER};
    const agent_identity_t early = {
        .key_id = "key", .checked_at = now, .expires_at = now + 1000};
    fixture_t fixture;
    agent_waiter_t *waiters[3];

    query_error = AGENT_E_UNAVAILABLE;
    open_fixture_with(&fixture, &limits);
    waiters[0] = register_with_key(&fixture, &late);
    waiters[1] = register_with_key(&fixture, &early);
    agent_waiter_unregister(waiters[0]);
    pass(1000);
    waiters[2] = register_with_key(&fixture, &early);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(agent_waiter_block(waiters[i], 10000),
                         AGENT_REASON_KEY_INVALID);
        agent_waiter_unregister(waiters[i]);
    }
    query_error = AGENT_E_COUNT;
    apr_pool_destroy(fixture.pool);
}

/* As it may for seconds, for the pool and for the database. */
static void a_statement_that_waits_holds_up_no_expiry(void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = 2,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    const agent_identity_t due = {.key_id = "due",
                                  .checked_at = now - apr_time_from_sec(9),
                                  .expires_at = AGENT_CLOCK_NEVER};
    const agent_identity_t short_lived = {
        .key_id = "short", .checked_at = now, .expires_at = now + 1000};
    fixture_t fixture;
    agent_waiter_t *waiters[2];

    next_result = (agent_db_result_t){.rows = 0};
    __atomic_store_n(&query_blocks, true, __ATOMIC_SEQ_CST);
    queries = 0;
    open_fixture_with(&fixture, &limits);
    waiters[0] = register_with_key(&fixture, &due);
    wait_for_query(&fixture, 1);
    pass(1000);
    waiters[1] = register_with_key(&fixture, &short_lived);
    assert_int_equal(agent_waiter_block(waiters[1], 10000),
                     AGENT_REASON_KEY_INVALID);
    __atomic_store_n(&query_blocks, false, __ATOMIC_SEQ_CST);
    agent_waiter_unregister(waiters[1]);
    agent_waiter_unregister(waiters[0]);
    apr_pool_destroy(fixture.pool);
}

static void a_key_that_expires_in_a_suspension_ends_when_the_host_goes_on(
    void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = 2,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    const agent_identity_t expiring = {.key_id = "expiring",
                                       .checked_at = now,
                                       .expires_at = now
                                           + apr_time_from_sec(3600)};
    const agent_identity_t ended = {.key_id = "ended",
                                    .checked_at = now + apr_time_from_sec(3600),
                                    .expires_at = AGENT_CLOCK_NEVER};
    fixture_t fixture;
    agent_waiter_t *waiters[2];

    next_result = (agent_db_result_t){.rows = 1, .cells = {{"ended"}}};
    open_fixture_with(&fixture, &limits);
    waiters[0] = register_with_key(&fixture, &expiring);
    waiters[1] = register_with_key(&fixture, &ended);
    assert_int_equal(agent_waiter_block(waiters[0], 50), AGENT_REASON_NONE);
    pass(apr_time_from_sec(3602));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(agent_waiter_block(waiters[i], 10000),
                         AGENT_REASON_KEY_INVALID);
        agent_waiter_unregister(waiters[i]);
    }
    apr_pool_destroy(fixture.pool);
}

static void a_kernel_without_such_a_timer_waits_by_the_time_out_of_poll(
    void **state)
{
    const agent_waiter_limits_t limits = {
        .blocked = 1,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = apr_time_from_sec(3600)};
    const agent_identity_t identity = {
        .key_id = "key", .checked_at = now, .expires_at = now + 100000};
    fixture_t fixture;
    agent_waiter_t *waiter;

    has_timers = false;
    open_fixture_with(&fixture, &limits);
    waiter = register_with_key(&fixture, &identity);
    assert_int_equal(agent_waiter_block(waiter, 20), AGENT_REASON_NONE);
    pass(100000);
    assert_int_equal(agent_waiter_block(waiter, 10000),
                     AGENT_REASON_KEY_INVALID);
    agent_waiter_unregister(waiter);
    apr_pool_destroy(fixture.pool);
    has_timers = true;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_end_of_an_api_key_wakes_its_waiters),
        CHECK_TEST(keys_that_come_do_not_have_all_others_checked),
        CHECK_TEST(a_key_is_checked_again_within_2_seconds),
        CHECK_TEST(a_key_is_checked_again_at_once_that_got_no_connection),
        CHECK_TEST(the_earliest_expiry_of_a_key_holds_without_a_database),
        CHECK_TEST(the_expiry_of_a_key_stays_with_its_waiters),
        CHECK_TEST(a_statement_that_waits_holds_up_no_expiry),
        CHECK_TEST(
            a_key_that_expires_in_a_suspension_ends_when_the_host_goes_on),
        CHECK_TEST(
            a_kernel_without_such_a_timer_waits_by_the_time_out_of_poll)};

    return CHECK_RUN(tests);
}
