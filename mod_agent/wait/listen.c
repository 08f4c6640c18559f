/* SPDX-License-Identifier: Apache-2.0 */
/* The listen thread: receives notifications on channel agent_runs and wakes the
 * waiters concerned. */
#include "listen.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/id_list.h"
#include "../db/listener.h"
#include "dispatch.h"
#include "updates.h"
#include "watch.h"

/* The payload is a list of ids of runs and threads; one that may have ended has
 * a mark (agent.notify_runs). */
static void on_notified(void *baton, const char *payload)
{
    const char *id;
    apr_size_t length;

    while (agent_id_list_next(&payload, &id, &length)) {
        bool may_have_ended = length > 0 && id[length - 1] == '!';

        agent_updates_notify(baton, id, (apr_ssize_t)(length - may_have_ended),
                             may_have_ended);
    }
}

static void on_drained(void *baton)
{
    agent_updates_fetch(baton);
}

/* Notifications may have been lost: all waiters query. */
static void on_connected(void *baton)
{
    agent_waiter_registry_t *registry = baton;

    agent_lock_take(registry->lock);
    registry->is_listening = true;
    agent_dispatch_wake_all_locked(registry, AGENT_REASON_QUERY);
    agent_lock_release(registry->lock);
}

static void on_lost(void *baton, const char *cause)
{
    agent_waiter_registry_t *registry = baton;
    apr_time_t now = apr_time_now();
    char text[512];

    agent_lock_take(registry->lock);
    registry->is_listening = false;
    registry->timer.poll_at = now;
    agent_lock_release(registry->lock);
    agent_watch_interrupt(registry);
    if (agent_throttle_pass(&registry->loss_throttle, now, NULL)) {
        apr_snprintf(text, sizeof(text),
                     "no LISTEN connection, requests that wait poll instead: "
                     "%s",
                     cause);
        text[strcspn(text, "\n")] = '\0';
        registry->log.write(registry->log.baton, AGENT_LOG_WARNING, "AGT0201",
                            0, text);
    }
}

void agent_listen_init(agent_waiter_registry_t *registry, const char *conninfo,
                       apr_pool_t *pool)
{
    agent_listener_events_t events = {on_notified, on_drained, on_connected,
                                      on_lost, registry};

    registry->listener = agent_listener_create(
        conninfo, "agent_runs", registry->end_fds[0], &events, pool);
}

void *APR_THREAD_FUNC agent_listen_run(apr_thread_t *thread, void *data)
{
    const agent_waiter_registry_t *registry = data;

    agent_listener_run(registry->listener);
    return NULL;
}
