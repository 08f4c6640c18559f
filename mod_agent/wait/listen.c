/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that LISTENs, and wakes who waits for what it hears. */
#include "state.h"

#include <string.h>

#include <apr_strings.h>

#include "../db/listen.h"
#include "dispatch.h"

/* Between two complaints about the connection. */
#define QUIET_TIME apr_time_from_sec(60)

/* The payload is the ids of runs and threads, separated by spaces. */
static void on_notified(void *baton, const char *payload)
{
    while (*payload != '\0') {
        size_t length = strcspn(payload, " ");

        agent_wait_note_change(baton, payload, (apr_ssize_t)length);
        payload += length;
        payload += strspn(payload, " ");
    }
}

static void on_drained(void *baton)
{
    agent_wait_fetch_news(baton);
}

static void on_connected(void *baton)
{
    agent_waits_t *waits = baton;

    apr_thread_mutex_lock(waits->mutex);
    waits->hearing = true;
    agent_wait_wake_all_locked(waits, AGENT_WAIT_WOKEN);
    apr_thread_mutex_unlock(waits->mutex);
}

/* True when it is time to complain again. */
static bool note_loss(agent_waits_t *waits)
{
    apr_time_t now = apr_time_now();
    bool complain;

    apr_thread_mutex_lock(waits->mutex);
    waits->hearing = false;
    waits->look_at = now;
    complain = now - waits->complained_at > QUIET_TIME;
    if (complain) {
        waits->complained_at = now;
    }
    apr_thread_mutex_unlock(waits->mutex);
    agent_wait_nudge(waits);
    return complain;
}

static void on_lost(void *baton, const char *cause)
{
    const agent_waits_t *waits = baton;
    char text[512];

    if (note_loss(baton)) {
        apr_snprintf(text, sizeof(text),
                     "no LISTEN connection, requests that wait poll instead: "
                     "%s",
                     cause);
        text[strcspn(text, "\n")] = '\0';
        waits->log.write(waits->log.baton, AGENT_LOG_WARNING, "AGT0201", 0,
                         text);
    }
}

agent_listener_t *agent_wait_make_listener(agent_waits_t *waits,
                                           const char *conninfo,
                                           apr_pool_t *pool)
{
    agent_listener_events_t events = {on_notified, on_drained, on_connected,
                                      on_lost, waits};

    return agent_listener_create(conninfo, "agent_runs", waits->end_fds[0],
                                 &events, pool);
}

void *APR_THREAD_FUNC agent_wait_hear(apr_thread_t *thread, void *data)
{
    const agent_waits_t *waits = data;

    agent_listener_run(waits->listener);
    return NULL;
}
