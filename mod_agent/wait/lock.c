/* SPDX-License-Identifier: Apache-2.0 */
/* Holds signals while a registry is locked; see lock.h. */
#include "lock.h"

#include "../core/thread.h"

void agent_registry_lock(agent_waiter_registry_t *registry)
{
    sigset_t before;

    if (!registry->holds_signals) {
        apr_thread_mutex_lock(registry->mutex);
        return;
    }
    agent_thread_hold_signals(&before);
    apr_thread_mutex_lock(registry->mutex);
    registry->signals_before = before;
}

void agent_registry_unlock(agent_waiter_registry_t *registry)
{
    sigset_t before = registry->signals_before;

    apr_thread_mutex_unlock(registry->mutex);
    if (registry->holds_signals) {
        agent_thread_release_signals(&before);
    }
}
