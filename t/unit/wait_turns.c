/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_agent/wait/wait.c */
/* OBJECTS: ../mod_agent/core/allocator.c */
/* OBJECTS: ../mod_agent/wait/turns.c */
/* OBJECTS: ../mod_agent/wait/address.c */
/* OBJECTS: ../mod_agent/wait/body_slot.c */
/* OBJECTS: ../mod_agent/wait/hear.c */
/* OBJECTS: ../mod_agent/wait/news.c */
/* OBJECTS: ../mod_agent/wait/watch.c */
/* OBJECTS: ../mod_agent/db/array.c */
/* OBJECTS: ../mod_agent/core/error.c */
/* Which of the woken waiters are dispatched. */
#include "wait_site.h"

#define CROWD 5

static void allow(const site_t *site, int count)
{
    apr_thread_mutex_lock(site->waits->mutex);
    site->waits->free_parked = count;
    apr_thread_mutex_unlock(site->waits->mutex);
}

/* A site with a crowd of parked waiters that have nothing to do. */
static void enter_crowd(site_t *site, agent_waiter_t **crowd)
{
    open_site(site, apr_time_from_sec(3600));
    allow(site, CROWD);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = enter(site, RUN, -1, false);
        assert_int_equal(agent_wait_take_or_rest(crowd[i], false),
                         AGENT_WAIT_NOTHING);
    }
}

/* Which of them were dispatched and have not begun, as bits. */
static unsigned find_dispatched(agent_waiter_t *const *crowd)
{
    unsigned dispatched = 0;

    for (int i = 0; i < CROWD; i++) {
        dispatched |= is_dispatched(crowd[i]) ? 1U << i : 0;
    }
    return dispatched;
}

static void wake_in_order(const site_t *site, agent_waiter_t *const *crowd)
{
    apr_thread_mutex_lock(site->waits->mutex);
    for (int i = 0; i < CROWD; i++) {
        agent_wait_wake_locked(crowd[i], AGENT_WAIT_WOKEN);
        agent_wait_wake_locked(crowd[i], AGENT_WAIT_GONE);
    }
    apr_thread_mutex_unlock(site->waits->mutex);
}

/* Begins the turn of one that was dispatched, and ends it. */
static void take_turn(agent_waiter_t *waiter)
{
    assert_int_equal(take(waiter), AGENT_WAIT_GONE);
    agent_wait_end_turn(waiter);
}

static void few_of_the_woken_are_dispatched_at_once(void **state)
{
    site_t site;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&site, crowd);
    wake_in_order(&site, crowd);
    assert_int_equal(find_dispatched(crowd), 1U << 0 | 1U << 1 | 1U << 2);
    take_turn(crowd[1]);
    assert_int_equal(find_dispatched(crowd), 1U << 0 | 1U << 2 | 1U << 3);
    agent_wait_leave(crowd[0]);
    assert_int_equal(site.waits->turns_out, 3);
    take_turn(crowd[4]);
    agent_wait_leave(crowd[3]);
    take_turn(crowd[2]);
    assert_int_equal(site.waits->turns_out, 0);
    assert_int_equal(site.waits->turns_pending, 0);
    apr_pool_destroy(site.pool);
}

static void threads_are_left_to_requests(void **state)
{
    site_t site;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&site, crowd);
    /* One more than the reserve, and that one is asked for. */
    idle = 2;
    wake_in_order(&site, crowd);
    assert_int_equal(find_dispatched(crowd), 1U << 0);
    /* All are busy: the least goes on. */
    idle = 0;
    take_turn(crowd[0]);
    assert_int_equal(find_dispatched(crowd), 1U << 1);
    idle = 100;
    take_turn(crowd[1]);
    assert_int_equal(find_dispatched(crowd), 1U << 2 | 1U << 3 | 1U << 4);
    apr_pool_destroy(site.pool);
}

static void polls_without_a_database_take_the_least(void **state)
{
    site_t site;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&site, crowd);
    apr_thread_mutex_lock(site.waits->mutex);
    site.waits->hearing = false;
    site.waits->look_at = apr_time_now() + apr_time_from_sec(3600);
    apr_thread_mutex_unlock(site.waits->mutex);
    wake_in_order(&site, crowd);
    assert_int_equal(find_dispatched(crowd), 1U << 0);
    apr_pool_destroy(site.pool);
}

static void a_turn_after_the_other_is_for_those_before(void **state)
{
    site_t site;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&site, crowd);
    wake_in_order(&site, crowd);
    take_turn(crowd[0]);
    /* 4 is queued: 0 gives its thread back, and comes after it. */
    assert_int_equal(agent_wait_take_or_rest(crowd[0], true),
                     AGENT_WAIT_NOTHING);
    take_turn(crowd[1]);
    assert_int_equal(find_dispatched(crowd), 1U << 2 | 1U << 3 | 1U << 4);
    take_turn(crowd[2]);
    assert_int_equal(find_dispatched(crowd), 1U << 0 | 1U << 3 | 1U << 4);
    assert_int_equal(take(crowd[0]), AGENT_WAIT_WOKEN);
    agent_wait_end_turn(crowd[0]);
    assert_int_equal(agent_wait_take_or_rest(crowd[0], true), AGENT_WAIT_WOKEN);
    apr_pool_destroy(site.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(few_of_the_woken_are_dispatched_at_once),
        CHECK_TEST(threads_are_left_to_requests),
        CHECK_TEST(polls_without_a_database_take_the_least),
        CHECK_TEST(a_turn_after_the_other_is_for_those_before),
    };

    return CHECK_RUN(tests);
}
