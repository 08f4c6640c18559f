/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: wait/lock.c core/thread.c */
/* The lock of a registry, and the signals that end a child of the prefork MPM.
 */
#include "check.h"

#include <signal.h>

#include "../../mod_agent/wait/lock.h"

static agent_waiter_registry_t registry;
static int signals;
static int locked;

/* As the end of a child: it needs the lock. */
static void end_child(int number)
{
    signals++;
    if (apr_thread_mutex_trylock(registry.mutex) != APR_SUCCESS) {
        locked++;
        return;
    }
    apr_thread_mutex_unlock(registry.mutex);
}

static void set_up(bool holds_signals, apr_pool_t *pool)
{
    memset(&registry, 0, sizeof(registry));
    registry.holds_signals = holds_signals;
    assert_int_equal(apr_thread_mutex_create(&registry.mutex,
                                             APR_THREAD_MUTEX_DEFAULT, pool),
                     APR_SUCCESS);
    signals = 0;
    locked = 0;
    signal(SIGTERM, end_child);
    signal(SIGHUP, end_child);
}

static void signals_that_end_a_prefork_child_wait_for_the_lock(void **state)
{
    set_up(true, *state);
    agent_registry_lock(&registry);
    raise(SIGTERM);
    raise(SIGHUP);
    assert_int_equal(signals, 0);
    agent_registry_unlock(&registry);
    assert_int_equal(signals, 2);
    assert_int_equal(locked, 0);
    raise(SIGTERM);
    assert_int_equal(signals, 3);
}

static void signals_that_were_held_before_stay_so(void **state)
{
    sigset_t held;
    sigset_t before;

    set_up(true, *state);
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    agent_registry_lock(&registry);
    agent_registry_unlock(&registry);
    raise(SIGTERM);
    assert_int_equal(signals, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(signals, 1);
    assert_int_equal(locked, 0);
}

static void with_other_mpms_the_lock_changes_no_signals(void **state)
{
    set_up(false, *state);
    agent_registry_lock(&registry);
    raise(SIGTERM);
    assert_int_equal(signals, 1);
    agent_registry_unlock(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(signals_that_end_a_prefork_child_wait_for_the_lock),
        CHECK_TEST(signals_that_were_held_before_stay_so),
        CHECK_TEST(with_other_mpms_the_lock_changes_no_signals)};

    return CHECK_RUN(tests);
}
