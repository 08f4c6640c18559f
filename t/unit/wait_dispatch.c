/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_agent/wait/registry.c */
/* OBJECTS: ../mod_agent/wait/waiter.c */
/* OBJECTS: ../mod_agent/wait/table.c */
/* OBJECTS: ../mod_agent/wait/dispatch.c */
/* OBJECTS: ../mod_agent/wait/dispatch_queue.c */
/* OBJECTS: ../mod_agent/wait/listen.c */
/* OBJECTS: ../mod_agent/wait/updates.c */
/* OBJECTS: ../mod_agent/wait/watch.c */
/* OBJECTS: ../mod_agent/wait/timer.c */
/* OBJECTS: ../mod_agent/wait/client_address.c */
/* OBJECTS: ../mod_agent/core/allocator.c */
/* OBJECTS: ../mod_agent/core/id_list.c */
/* OBJECTS: ../mod_agent/core/throttle.c */
/* OBJECTS: ../mod_agent/db/array.c */
/* OBJECTS: ../mod_agent/core/error.c */
/* Which woken waiters are dispatched. */
#include "wait_fixture.h"

#define CROWD 5

static void allow(const fixture_t *fixture, int count)
{
    apr_thread_mutex_lock(fixture->registry->mutex);
    fixture->registry->table.free_parked = count;
    apr_thread_mutex_unlock(fixture->registry->mutex);
}

/* A registry with a crowd of idle parked waiters. */
static void enter_crowd(fixture_t *fixture, agent_waiter_t **crowd)
{
    open_fixture(fixture, apr_time_from_sec(3600));
    allow(fixture, CROWD);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = enter(fixture, RUN, -1, false);
        assert_int_equal(agent_waiter_take_or_idle(crowd[i], false),
                         AGENT_REASON_NONE);
    }
}

/* The waiters that were dispatched and have not begun their turn, as bits. */
static unsigned find_dispatched(agent_waiter_t *const *crowd)
{
    unsigned dispatched = 0;

    for (int i = 0; i < CROWD; i++) {
        dispatched |= is_dispatched(crowd[i]) ? 1U << i : 0;
    }
    return dispatched;
}

static void wake_in_order(const fixture_t *fixture,
                          agent_waiter_t *const *crowd)
{
    apr_thread_mutex_lock(fixture->registry->mutex);
    for (int i = 0; i < CROWD; i++) {
        agent_dispatch_wake_locked(crowd[i], AGENT_REASON_QUERY);
        agent_dispatch_wake_locked(crowd[i], AGENT_REASON_CLIENT_GONE);
    }
    apr_thread_mutex_unlock(fixture->registry->mutex);
}

/* Begins and ends the turn of a dispatched waiter. */
static void take_turn(agent_waiter_t *waiter)
{
    assert_int_equal(take(waiter), AGENT_REASON_CLIENT_GONE);
    agent_waiter_end_turn(waiter);
}

static void woken_waiters_are_dispatched_up_to_the_limit(void **state)
{
    fixture_t fixture;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&fixture, crowd);
    wake_in_order(&fixture, crowd);
    assert_int_equal(find_dispatched(crowd), 1U << 0 | 1U << 1 | 1U << 2);
    take_turn(crowd[1]);
    assert_int_equal(find_dispatched(crowd), 1U << 0 | 1U << 2 | 1U << 3);
    agent_waiter_unregister(crowd[0]);
    assert_int_equal(fixture.registry->dispatch.turns, 3);
    take_turn(crowd[4]);
    agent_waiter_unregister(crowd[3]);
    take_turn(crowd[2]);
    assert_int_equal(fixture.registry->dispatch.turns, 0);
    assert_int_equal(fixture.registry->dispatch.turns_pending, 0);
    apr_pool_destroy(fixture.pool);
}

static void idle_threads_are_reserved_for_other_requests(void **state)
{
    fixture_t fixture;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&fixture, crowd);
    /* One idle thread beyond the reserve. */
    idle = 2;
    wake_in_order(&fixture, crowd);
    assert_int_equal(find_dispatched(crowd), 1U << 0);
    /* All threads are busy: one turn at a time. */
    idle = 0;
    take_turn(crowd[0]);
    assert_int_equal(find_dispatched(crowd), 1U << 1);
    idle = 100;
    take_turn(crowd[1]);
    assert_int_equal(find_dispatched(crowd), 1U << 2 | 1U << 3 | 1U << 4);
    apr_pool_destroy(fixture.pool);
}

static void polls_without_a_listen_connection_use_the_least_threads(
    void **state)
{
    fixture_t fixture;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&fixture, crowd);
    apr_thread_mutex_lock(fixture.registry->mutex);
    fixture.registry->is_listening = false;
    fixture.registry->timer.poll_at = apr_time_now() + apr_time_from_sec(3600);
    apr_thread_mutex_unlock(fixture.registry->mutex);
    wake_in_order(&fixture, crowd);
    assert_int_equal(find_dispatched(crowd), 1U << 0);
    apr_pool_destroy(fixture.pool);
}

static void queued_waiters_precede_another_turn_of_the_same_waiter(void **state)
{
    fixture_t fixture;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&fixture, crowd);
    wake_in_order(&fixture, crowd);
    take_turn(crowd[0]);
    /* 4 is queued: 0 gives its thread back and queues after it. */
    assert_int_equal(agent_waiter_take_or_idle(crowd[0], true),
                     AGENT_REASON_NONE);
    take_turn(crowd[1]);
    assert_int_equal(find_dispatched(crowd), 1U << 2 | 1U << 3 | 1U << 4);
    take_turn(crowd[2]);
    assert_int_equal(find_dispatched(crowd), 1U << 0 | 1U << 3 | 1U << 4);
    assert_int_equal(take(crowd[0]), AGENT_REASON_QUERY);
    agent_waiter_end_turn(crowd[0]);
    assert_int_equal(agent_waiter_take_or_idle(crowd[0], true),
                     AGENT_REASON_QUERY);
    apr_pool_destroy(fixture.pool);
}

/* Three waiters of one run reach the limit, and two more are queued before one
 * of another run. */
static void waiters_of_one_run_do_not_delay_those_of_another(void **state)
{
    fixture_t fixture;
    agent_waiter_t *crowd[CROWD];
    agent_waiter_t *other;

    enter_crowd(&fixture, crowd);
    allow(&fixture, 1);
    other = enter(&fixture, OTHER, -1, false);
    assert_int_equal(agent_waiter_take_or_idle(other, false),
                     AGENT_REASON_NONE);
    wake_in_order(&fixture, crowd);
    apr_thread_mutex_lock(fixture.registry->mutex);
    agent_dispatch_wake_locked(other, AGENT_REASON_CLIENT_GONE);
    apr_thread_mutex_unlock(fixture.registry->mutex);
    take_turn(crowd[0]);
    assert_int_equal(find_dispatched(crowd), 1U << 1 | 1U << 2 | 1U << 3);
    assert_false(is_dispatched(other));
    take_turn(crowd[1]);
    assert_true(is_dispatched(other));
    assert_int_equal(find_dispatched(crowd), 1U << 2 | 1U << 3);
    take_turn(crowd[2]);
    assert_int_equal(find_dispatched(crowd), 1U << 3 | 1U << 4);
    apr_pool_destroy(fixture.pool);
}

static void a_line_continues_when_its_first_or_last_waiter_leaves(void **state)
{
    fixture_t fixture;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&fixture, crowd);
    idle = 0;
    wake_in_order(&fixture, crowd);
    agent_waiter_unregister(crowd[1]);
    agent_waiter_unregister(crowd[4]);
    take_turn(crowd[0]);
    assert_int_equal(find_dispatched(crowd), 1U << 2);
    take_turn(crowd[2]);
    assert_int_equal(find_dispatched(crowd), 1U << 3);
    take_turn(crowd[3]);
    assert_int_equal(fixture.registry->dispatch.turns, 0);
    assert_int_equal(apr_hash_count(fixture.registry->dispatch.lines), 0);
    idle = 100;
    apr_pool_destroy(fixture.pool);
}

static void a_first_turn_is_queued_when_the_limit_is_reached(void **state)
{
    fixture_t fixture;
    agent_waiter_t *crowd[CROWD];
    agent_waiter_t *new;

    enter_crowd(&fixture, crowd);
    allow(&fixture, 1);
    new = enter(&fixture, OTHER, -1, false);
    idle = 0;
    wake_in_order(&fixture, crowd);
    assert_false(agent_waiter_keep_thread(new));
    assert_int_equal(agent_waiter_take_or_idle(new, true), AGENT_REASON_NONE);
    take_turn(crowd[0]);
    take_turn(crowd[1]);
    assert_true(is_dispatched(new));
    idle = 100;
    apr_pool_destroy(fixture.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(woken_waiters_are_dispatched_up_to_the_limit),
        CHECK_TEST(idle_threads_are_reserved_for_other_requests),
        CHECK_TEST(polls_without_a_listen_connection_use_the_least_threads),
        CHECK_TEST(queued_waiters_precede_another_turn_of_the_same_waiter),
        CHECK_TEST(waiters_of_one_run_do_not_delay_those_of_another),
        CHECK_TEST(a_line_continues_when_its_first_or_last_waiter_leaves),
        CHECK_TEST(a_first_turn_is_queued_when_the_limit_is_reached),
    };

    return CHECK_RUN(tests);
}
