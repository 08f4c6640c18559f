/* SPDX-License-Identifier: Apache-2.0 */
/* The timed actions of the watch thread. */
#include "timer.h"

#include "dispatch.h"
#include "updates.h"
#include "waiter_table.h"

/* Between polls of all waiters while there is no LISTEN connection. */
#define POLL_INTERVAL apr_time_from_sec(1)
/* Every 6th heartbeat also polls for changes whose notification was lost; the
 * polls of subscribed waiters share one query. */
#define HEARTBEATS_PER_POLL 6
/* Heartbeats of clients that connected together are spread: a slice of time has
 * at most twice as many as an even distribution. */
#define SLICE            apr_time_from_msec(10)
#define LEAST_HEARTBEATS 8
/* Between calls of is_ending. */
#define ENDING_INTERVAL apr_time_from_sec(1)

static bool polls_ending(const agent_timer_t *timer)
{
    return timer->is_ending != NULL && !timer->stopping;
}

/* 0 stands for never. */
static apr_time_t earlier(apr_time_t a, apr_time_t b)
{
    return a == 0 || b < a ? b : a;
}

apr_time_t agent_timer_due_locked(const agent_waiter_registry_t *registry)
{
    const struct agent_waiter_ring_t *ring = &registry->table.by_heartbeat;
    const agent_timer_t *timer = &registry->timer;
    apr_time_t due = 0;

    if (!APR_RING_EMPTY(ring, agent_waiter_t, link)) {
        due = APR_RING_FIRST(ring)->heartbeat_at;
        due = due > timer->heartbeats_at ? due : timer->heartbeats_at;
    }
    if (!APR_RING_EMPTY(&registry->table.by_timeout, agent_waiter_t, timeout)) {
        due = earlier(due,
                      APR_RING_FIRST(&registry->table.by_timeout)->timeout_at);
    }
    if (!registry->is_listening && due != 0 && timer->poll_at < due) {
        due = timer->poll_at;
    }
    if (polls_ending(timer) && due != 0 && timer->ending_at < due) {
        due = timer->ending_at;
    }
    if (timer->stopping && !timer->stopped
        && (due == 0 || timer->stop_at < due)) {
        due = timer->stop_at;
    }
    return due;
}

/* Also true when the clock was set back by more than a heartbeat. */
static bool is_heartbeat_due(const agent_waiter_t *waiter,
                             apr_interval_time_t heartbeat, apr_time_t now)
{
    return waiter->heartbeat_at <= now
        || waiter->heartbeat_at > now + 2 * heartbeat;
}

static bool has_to_query_locked(agent_waiter_t *waiter)
{
    return ++waiter->heartbeats % HEARTBEATS_PER_POLL == 0
        && !(waiter->registry->is_listening
             && agent_updates_request_locked(waiter));
}

/* The ring stays sorted: all waiters have one interval. */
static void send_heartbeat_locked(agent_waiter_registry_t *registry,
                                  agent_waiter_t *waiter, apr_time_t now)
{
    APR_RING_REMOVE(waiter, link);
    waiter->heartbeat_at = now + registry->timer.heartbeat;
    APR_RING_INSERT_TAIL(&registry->table.by_heartbeat, waiter, agent_waiter_t,
                         link);
    agent_dispatch_wake_locked(waiter,
                               has_to_query_locked(waiter)
                                   ? AGENT_REASON_HEARTBEAT_QUERY
                                   : AGENT_REASON_HEARTBEAT);
}

static int count_per_slice(const agent_waiter_registry_t *registry)
{
    int count = (int)(2 * registry->table.count * SLICE
                      / registry->timer.heartbeat);

    return count > LEAST_HEARTBEATS ? count : LEAST_HEARTBEATS;
}

static void send_heartbeats_locked(agent_waiter_registry_t *registry,
                                   apr_time_t now)
{
    struct agent_waiter_ring_t *ring = &registry->table.by_heartbeat;
    agent_timer_t *timer = &registry->timer;
    int left;

    if (APR_RING_EMPTY(ring, agent_waiter_t, link)
        || (now < timer->heartbeats_at
            && timer->heartbeats_at <= now + SLICE)) {
        return;
    }
    left = count_per_slice(registry);
    while (!APR_RING_EMPTY(ring, agent_waiter_t, link)
           && is_heartbeat_due(APR_RING_FIRST(ring), timer->heartbeat, now)) {
        if (left-- == 0) {
            timer->heartbeats_at = now + SLICE;
            return;
        }
        send_heartbeat_locked(registry, APR_RING_FIRST(ring), now);
    }
}

static void send_timeouts_locked(agent_waiter_registry_t *registry,
                                 apr_time_t now)
{
    const struct agent_waiter_ring_t *ring = &registry->table.by_timeout;

    while (!APR_RING_EMPTY(ring, agent_waiter_t, timeout)
           && APR_RING_FIRST(ring)->timeout_at <= now) {
        agent_waiter_t *waiter = APR_RING_FIRST(ring);

        agent_waiter_table_drop_timeout_locked(waiter);
        agent_dispatch_wake_locked(waiter, AGENT_REASON_QUERY);
    }
}

static void stop_streams_locked(agent_waiter_registry_t *registry)
{
    agent_waiter_t *waiter;

    APR_RING_FOREACH(waiter, &registry->table.by_heartbeat, agent_waiter_t,
                     link)
    {
        if (waiter->params.is_stream && !waiter->params.has_end) {
            agent_dispatch_wake_locked(waiter, AGENT_REASON_STOPPING);
        }
    }
}

void agent_timer_stop_locked(agent_waiter_registry_t *registry,
                             apr_interval_time_t grace)
{
    registry->timer.stopping = true;
    registry->timer.stop_at = apr_time_now() + grace;
    stop_streams_locked(registry);
}

void agent_timer_run_locked(agent_waiter_registry_t *registry, apr_time_t now)
{
    agent_timer_t *timer = &registry->timer;

    send_heartbeats_locked(registry, now);
    send_timeouts_locked(registry, now);
    if (!registry->is_listening && timer->poll_at <= now) {
        timer->poll_at = now + POLL_INTERVAL;
        agent_dispatch_wake_all_locked(registry, AGENT_REASON_QUERY);
    }
    if (polls_ending(timer) && timer->ending_at <= now) {
        timer->ending_at = now + ENDING_INTERVAL;
        if (timer->is_ending()) {
            agent_timer_stop_locked(registry, timer->grace);
        }
    }
    if (timer->stopping && !timer->stopped && timer->stop_at <= now) {
        timer->stopped = true;
        agent_dispatch_wake_all_locked(registry, AGENT_REASON_STOPPING);
    }
}
