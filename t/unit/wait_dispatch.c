/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_agent/wait/waiter.c */
/* OBJECTS: ../mod_agent/core/allocator.c */
/* OBJECTS: ../mod_agent/wait/dispatch.c */
/* OBJECTS: ../mod_agent/wait/dispatch_queue.c */
/* OBJECTS: ../mod_agent/wait/client_address.c */
/* OBJECTS: ../mod_agent/wait/listen.c */
/* OBJECTS: ../mod_agent/wait/updates.c */
/* OBJECTS: ../mod_agent/wait/watch.c */
/* OBJECTS: ../mod_agent/db/array.c */
/* OBJECTS: ../mod_agent/core/error.c */
/* Which of the woken waiters are dispatched. */
#include "wait_fixture.h"

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

/* Three of one run have all the room, and two more of it are queued before one
 * of another. */
static void waiters_of_one_run_do_not_hold_up_another(void **state)
{
    site_t site;
    agent_waiter_t *crowd[CROWD];
    agent_waiter_t *other;

    enter_crowd(&site, crowd);
    allow(&site, 1);
    other = enter(&site, OTHER, -1, false);
    assert_int_equal(agent_wait_take_or_rest(other, false), AGENT_WAIT_NOTHING);
    wake_in_order(&site, crowd);
    apr_thread_mutex_lock(site.waits->mutex);
    agent_wait_wake_locked(other, AGENT_WAIT_GONE);
    apr_thread_mutex_unlock(site.waits->mutex);
    take_turn(crowd[0]);
    assert_int_equal(find_dispatched(crowd), 1U << 1 | 1U << 2 | 1U << 3);
    assert_false(is_dispatched(other));
    take_turn(crowd[1]);
    assert_true(is_dispatched(other));
    assert_int_equal(find_dispatched(crowd), 1U << 2 | 1U << 3);
    take_turn(crowd[2]);
    assert_int_equal(find_dispatched(crowd), 1U << 3 | 1U << 4);
    apr_pool_destroy(site.pool);
}

/* The first of a line leaves it, and the last. */
static void a_line_goes_on_without_who_has_left(void **state)
{
    site_t site;
    agent_waiter_t *crowd[CROWD];

    enter_crowd(&site, crowd);
    idle = 0;
    wake_in_order(&site, crowd);
    agent_wait_leave(crowd[1]);
    agent_wait_leave(crowd[4]);
    take_turn(crowd[0]);
    assert_int_equal(find_dispatched(crowd), 1U << 2);
    take_turn(crowd[2]);
    assert_int_equal(find_dispatched(crowd), 1U << 3);
    take_turn(crowd[3]);
    assert_int_equal(site.waits->turns_out, 0);
    assert_int_equal(apr_hash_count(site.waits->lines), 0);
    idle = 100;
    apr_pool_destroy(site.pool);
}

static void a_first_turn_waits_for_room(void **state)
{
    site_t site;
    agent_waiter_t *crowd[CROWD];
    agent_waiter_t *new;

    enter_crowd(&site, crowd);
    allow(&site, 1);
    new = enter(&site, OTHER, -1, false);
    idle = 0;
    wake_in_order(&site, crowd);
    assert_false(agent_wait_keep_thread(new));
    assert_int_equal(agent_wait_take_or_rest(new, true), AGENT_WAIT_NOTHING);
    take_turn(crowd[0]);
    take_turn(crowd[1]);
    assert_true(is_dispatched(new));
    idle = 100;
    apr_pool_destroy(site.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(few_of_the_woken_are_dispatched_at_once),
        CHECK_TEST(threads_are_left_to_requests),
        CHECK_TEST(polls_without_a_database_take_the_least),
        CHECK_TEST(a_turn_after_the_other_is_for_those_before),
        CHECK_TEST(waiters_of_one_run_do_not_hold_up_another),
        CHECK_TEST(a_line_goes_on_without_who_has_left),
        CHECK_TEST(a_first_turn_waits_for_room),
    };

    return CHECK_RUN(tests);
}
