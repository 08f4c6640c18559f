/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: wait/waiter_registry.c core/lock.c */
/* OBJECTS: wait/waiter.c */
/* OBJECTS: wait/waiter_table.c */
/* OBJECTS: wait/dispatch.c */
/* OBJECTS: wait/dispatch_queue.c */
/* OBJECTS: wait/listen.c */
/* OBJECTS: wait/updates.c wait/api_keys.c core/clock.c */
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
/* Which woken waiters are dispatched. */
#include "wait_fixture.h"

#define WAITERS 5

static void limit_parked(const fixture_t *fixture, int count)
{
    agent_lock_take(fixture->registry->lock);
    fixture->registry->table.parked.slots = count
        + fixture->registry->table.parked.claimed;
    agent_lock_release(fixture->registry->lock);
}

/* Opens a registry with idle parked waiters of one run. */
static void open_with_idle(fixture_t *fixture, agent_waiter_t **waiters)
{
    open_fixture(fixture, apr_time_from_sec(3600));
    limit_parked(fixture, WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = register_parked(fixture, RUN, -1, false);
        assert_int_equal(agent_waiter_take_or_idle(waiters[i], false),
                         AGENT_REASON_NONE);
    }
}

/* The waiters that were dispatched and have not begun their turn, as bits. */
static unsigned find_dispatched(agent_waiter_t *const *waiters)
{
    unsigned dispatched = 0;

    for (int i = 0; i < WAITERS; i++) {
        dispatched |= is_dispatched(waiters[i]) ? 1U << i : 0;
    }
    return dispatched;
}

static void wake_in_order(const fixture_t *fixture,
                          agent_waiter_t *const *waiters)
{
    agent_lock_take(fixture->registry->lock);
    for (int i = 0; i < WAITERS; i++) {
        agent_dispatch_wake_locked(waiters[i], AGENT_REASON_QUERY);
        agent_dispatch_wake_locked(waiters[i], AGENT_REASON_CLIENT_GONE);
    }
    agent_lock_release(fixture->registry->lock);
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
    agent_waiter_t *waiters[WAITERS];

    open_with_idle(&fixture, waiters);
    wake_in_order(&fixture, waiters);
    assert_int_equal(find_dispatched(waiters), 1U << 0 | 1U << 1 | 1U << 2);
    take_turn(waiters[1]);
    assert_int_equal(find_dispatched(waiters), 1U << 0 | 1U << 2 | 1U << 3);
    agent_waiter_unregister(waiters[0]);
    assert_int_equal(fixture.registry->dispatch.turns, 3);
    take_turn(waiters[4]);
    agent_waiter_unregister(waiters[3]);
    take_turn(waiters[2]);
    assert_int_equal(fixture.registry->dispatch.turns, 0);
    assert_int_equal(fixture.registry->dispatch.turns_pending, 0);
    apr_pool_destroy(fixture.pool);
}

static void idle_threads_are_reserved_for_other_requests(void **state)
{
    fixture_t fixture;
    agent_waiter_t *waiters[WAITERS];

    open_with_idle(&fixture, waiters);
    /* One idle thread beyond the reserve. */
    idle = 2;
    wake_in_order(&fixture, waiters);
    assert_int_equal(find_dispatched(waiters), 1U << 0);
    /* All threads are busy: one turn at a time. */
    idle = 0;
    take_turn(waiters[0]);
    assert_int_equal(find_dispatched(waiters), 1U << 1);
    idle = 100;
    take_turn(waiters[1]);
    assert_int_equal(find_dispatched(waiters), 1U << 2 | 1U << 3 | 1U << 4);
    apr_pool_destroy(fixture.pool);
}

static void polls_without_a_listen_connection_use_the_least_threads(
    void **state)
{
    fixture_t fixture;
    agent_waiter_t *waiters[WAITERS];

    open_with_idle(&fixture, waiters);
    agent_lock_take(fixture.registry->lock);
    fixture.registry->is_listening = false;
    fixture.registry->timer.poll_at = apr_time_now() + apr_time_from_sec(3600);
    agent_lock_release(fixture.registry->lock);
    wake_in_order(&fixture, waiters);
    assert_int_equal(find_dispatched(waiters), 1U << 0);
    apr_pool_destroy(fixture.pool);
}

static void queued_waiters_precede_another_turn_of_the_same_waiter(void **state)
{
    fixture_t fixture;
    agent_waiter_t *waiters[WAITERS];

    open_with_idle(&fixture, waiters);
    wake_in_order(&fixture, waiters);
    take_turn(waiters[0]);
    /* 4 is queued: 0 gives its thread back and queues after it. */
    assert_int_equal(agent_waiter_take_or_idle(waiters[0], true),
                     AGENT_REASON_NONE);
    take_turn(waiters[1]);
    assert_int_equal(find_dispatched(waiters), 1U << 2 | 1U << 3 | 1U << 4);
    take_turn(waiters[2]);
    assert_int_equal(find_dispatched(waiters), 1U << 0 | 1U << 3 | 1U << 4);
    assert_int_equal(take(waiters[0]), AGENT_REASON_QUERY);
    agent_waiter_end_turn(waiters[0]);
    assert_int_equal(agent_waiter_take_or_idle(waiters[0], true),
                     AGENT_REASON_QUERY);
    apr_pool_destroy(fixture.pool);
}

/* Three waiters of one run reach the limit, and two more are queued before one
 * of another run. */
static void check_not_delayed(const char *deployment_id, const char *key)
{
    fixture_t fixture;
    agent_waiter_t *waiters[WAITERS];
    agent_waiter_t *other;

    open_with_idle(&fixture, waiters);
    limit_parked(&fixture, 1);
    other = register_in(&fixture, deployment_id, key, -1, false);
    assert_int_equal(agent_waiter_take_or_idle(other, false),
                     AGENT_REASON_NONE);
    wake_in_order(&fixture, waiters);
    agent_lock_take(fixture.registry->lock);
    agent_dispatch_wake_locked(other, AGENT_REASON_CLIENT_GONE);
    agent_lock_release(fixture.registry->lock);
    take_turn(waiters[0]);
    assert_int_equal(find_dispatched(waiters), 1U << 1 | 1U << 2 | 1U << 3);
    assert_false(is_dispatched(other));
    take_turn(waiters[1]);
    assert_true(is_dispatched(other));
    assert_int_equal(find_dispatched(waiters), 1U << 2 | 1U << 3);
    take_turn(waiters[2]);
    assert_int_equal(find_dispatched(waiters), 1U << 3 | 1U << 4);
    apr_pool_destroy(fixture.pool);
}

static void waiters_of_one_run_do_not_delay_those_of_another(void **state)
{
    check_not_delayed(OTHER, OTHER);
}

static void waiters_of_a_thread_do_not_delay_those_of_another_deployment(
    void **state)
{
    check_not_delayed(RUN, RUN);
}

static void a_queue_continues_when_its_first_or_last_waiter_leaves(void **state)
{
    fixture_t fixture;
    agent_waiter_t *waiters[WAITERS];

    open_with_idle(&fixture, waiters);
    idle = 0;
    wake_in_order(&fixture, waiters);
    agent_waiter_unregister(waiters[1]);
    agent_waiter_unregister(waiters[4]);
    take_turn(waiters[0]);
    assert_int_equal(find_dispatched(waiters), 1U << 2);
    take_turn(waiters[2]);
    assert_int_equal(find_dispatched(waiters), 1U << 3);
    take_turn(waiters[3]);
    assert_int_equal(fixture.registry->dispatch.turns, 0);
    assert_int_equal(apr_hash_count(fixture.registry->dispatch.key_queues), 0);
    idle = 100;
    apr_pool_destroy(fixture.pool);
}

static void a_first_turn_is_queued_when_the_limit_is_reached(void **state)
{
    fixture_t fixture;
    agent_waiter_t *waiters[WAITERS];
    agent_waiter_t *new;

    open_with_idle(&fixture, waiters);
    limit_parked(&fixture, 1);
    new = register_parked(&fixture, OTHER, -1, false);
    idle = 0;
    wake_in_order(&fixture, waiters);
    assert_false(agent_waiter_keep_thread(new));
    assert_int_equal(agent_waiter_take_or_idle(new, true), AGENT_REASON_NONE);
    take_turn(waiters[0]);
    take_turn(waiters[1]);
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
        CHECK_TEST(
            waiters_of_a_thread_do_not_delay_those_of_another_deployment),
        CHECK_TEST(a_queue_continues_when_its_first_or_last_waiter_leaves),
        CHECK_TEST(a_first_turn_is_queued_when_the_limit_is_reached),
    };

    return CHECK_RUN(tests);
}
