/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/lock.c core/child_thread.c core/allocator.c */
/* Locks of a child, and the signals that end a child of the prefork MPM. */
#include "check.h"

#include <signal.h>

#include <apr_thread_mutex.h>

#include "../../mod_agent/core/allocator.h"
#include "../../mod_agent/core/lock.h"

static agent_lock_t *lock;
static int signals;

/* As the end of a child, which would wait for the lock. */
static void end_child(int number)
{
    signals++;
}

static void set_up(bool blocks_signals, apr_pool_t *pool)
{
    agent_lock_start(blocks_signals);
    assert_int_equal(agent_lock_create(&lock, pool), APR_SUCCESS);
    signals = 0;
    signal(SIGTERM, end_child);
    signal(SIGHUP, end_child);
}

static void signals_that_end_a_prefork_child_wait_for_the_lock(void **state)
{
    set_up(true, *state);
    agent_lock_take(lock);
    raise(SIGTERM);
    raise(SIGHUP);
    assert_int_equal(signals, 0);
    agent_lock_release(lock);
    assert_int_equal(signals, 2);
    raise(SIGTERM);
    assert_int_equal(signals, 3);
}

static void they_wait_for_the_last_lock(void **state)
{
    agent_lock_t *outer;

    set_up(true, *state);
    outer = lock;
    assert_int_equal(agent_lock_create(&lock, *state), APR_SUCCESS);
    agent_lock_take(outer);
    agent_lock_take(lock);
    raise(SIGTERM);
    agent_lock_release(lock);
    assert_int_equal(signals, 0);
    agent_lock_release(outer);
    assert_int_equal(signals, 1);
}

static void signals_that_were_held_before_stay_so(void **state)
{
    sigset_t held;
    sigset_t before;

    set_up(true, *state);
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    agent_lock_take(lock);
    agent_lock_release(lock);
    raise(SIGTERM);
    assert_int_equal(signals, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(signals, 1);
}

static void with_other_mpms_the_lock_changes_no_signals(void **state)
{
    set_up(false, *state);
    agent_lock_take(lock);
    raise(SIGTERM);
    assert_int_equal(signals, 1);
    agent_lock_release(lock);
}

static apr_status_t raise_sigterm(void *data)
{
    raise(SIGTERM);
    assert_int_equal(signals, 0);
    return APR_SUCCESS;
}

static void signals_wait_while_a_pool_that_threads_share_is_destroyed(
    void **state)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool;

    set_up(true, *state);
    assert_int_equal(agent_allocator_create(&allocator, 0, *state),
                     APR_SUCCESS);
    pool = agent_allocator_make_pool(allocator);
    apr_pool_cleanup_register(pool, NULL, raise_sigterm, apr_pool_cleanup_null);
    agent_lock_destroy_pool(pool);
    assert_int_equal(signals, 1);
}

static void pools_of_requests_of_prefork_share_no_allocator(void **state)
{
    apr_allocator_t *allocator;
    apr_pool_t *pool;

    assert_int_equal(agent_allocator_create(&allocator, 0, *state),
                     APR_SUCCESS);
    set_up(false, *state);
    assert_ptr_equal(agent_lock_choose_allocator(allocator), allocator);
    set_up(true, *state);
    pool = agent_allocator_make_pool(agent_lock_choose_allocator(allocator));
    assert_ptr_not_equal(apr_pool_allocator_get(pool), allocator);
    assert_null(apr_allocator_mutex_get(apr_pool_allocator_get(pool)));
    apr_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(signals_that_end_a_prefork_child_wait_for_the_lock),
        CHECK_TEST(they_wait_for_the_last_lock),
        CHECK_TEST(signals_that_were_held_before_stay_so),
        CHECK_TEST(with_other_mpms_the_lock_changes_no_signals),
        CHECK_TEST(signals_wait_while_a_pool_that_threads_share_is_destroyed),
        CHECK_TEST(pools_of_requests_of_prefork_share_no_allocator)};

    return CHECK_RUN(tests);
}
