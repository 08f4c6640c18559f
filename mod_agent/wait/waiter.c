/* SPDX-License-Identifier: Apache-2.0 */
/* Waiters: registration, reasons and turns. */
#include "waiter.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../core/limit.h"
#include "api_keys.h"
#include "dispatch.h"
#include "state.h"
#include "updates.h"
#include "waiter_table.h"
#include "watch.h"

/* ---- turns ---- */

/* A heartbeat, and a query or updates, that are both pending become one
 * HEARTBEAT_QUERY, since the turn of a query alone may send nothing. */
static agent_wake_reason_t choose_reason(unsigned reasons)
{
    agent_wake_reason_t first = AGENT_REASON_CLIENT_GONE;

    while (first < AGENT_REASON_NONE && (reasons & 1U << first) == 0) {
        first++;
    }
    return (reasons & 1U << AGENT_REASON_HEARTBEAT) != 0
            && first > AGENT_REASON_HEARTBEAT_QUERY
            && first < AGENT_REASON_HEARTBEAT
        ? AGENT_REASON_HEARTBEAT_QUERY
        : first;
}

/* The reasons that stay pending when this one is taken, as bits. */
static unsigned keep_reasons(agent_wake_reason_t reason)
{
    unsigned kept = reason < AGENT_REASON_INPUT ? 1U << AGENT_REASON_INPUT : 0;

    return reason == AGENT_REASON_HALF_CLOSED
        ? kept | 1U << AGENT_REASON_KEY_INVALID | 1U << AGENT_REASON_STOPPING
        : kept;
}

static agent_wake_reason_t take_locked(agent_waiter_t *waiter)
{
    agent_wake_reason_t reason = choose_reason(waiter->reasons);

    agent_dispatch_begin_turn_locked(waiter);
    waiter->turn_updates = waiter->updates;
    waiter->updates = NULL;
    waiter->updates_bytes = 0;
    waiter->reasons &= keep_reasons(reason);
    return reason;
}

agent_wake_reason_t agent_waiter_take_reason(agent_waiter_t *waiter)
{
    agent_wake_reason_t reason;
    eventfd_t count;

    agent_lock_take(waiter->registry->lock);
    reason = take_locked(waiter);
    if (waiter->reasons == 0) {
        (void)!eventfd_read(waiter->wake_fd, &count);
    }
    agent_lock_release(waiter->registry->lock);
    return reason;
}

bool agent_waiter_keep_thread(agent_waiter_t *waiter)
{
    bool keeps;

    agent_lock_take(waiter->registry->lock);
    keeps = agent_dispatch_keep_thread_locked(waiter);
    agent_lock_release(waiter->registry->lock);
    return keeps;
}

/* A dispatched waiter has already been in the queue: it may continue. */
agent_wake_reason_t agent_waiter_take_or_idle(agent_waiter_t *waiter,
                                              bool has_more)
{
    agent_wake_reason_t reason = AGENT_REASON_NONE;
    eventfd_t count;

    agent_lock_take(waiter->registry->lock);
    (void)!eventfd_read(waiter->wake_fd, &count);
    if (has_more) {
        waiter->reasons |= 1U << AGENT_REASON_QUERY;
    }
    /* An earlier turn has handled the reasons that it was dispatched for. */
    if (waiter->is_dispatched && waiter->reasons == 0) {
        agent_dispatch_end_turn_locked(waiter);
    }
    if (waiter->is_dispatched || !agent_dispatch_idle_locked(waiter)) {
        reason = take_locked(waiter);
    }
    agent_lock_release(waiter->registry->lock);
    return reason;
}

/* Not a condition variable: the prefork MPM ends a child from a signal handler,
 * and a condition variable in use cannot be destroyed. */
agent_wake_reason_t agent_waiter_block(agent_waiter_t *waiter, int timeout_ms)
{
    struct pollfd waker = {.fd = waiter->wake_fd, .events = POLLIN};

    return poll(&waker, 1, timeout_ms) > 0 ? agent_waiter_take_reason(waiter)
                                           : AGENT_REASON_NONE;
}

const apr_array_header_t *agent_waiter_updates(const agent_waiter_t *waiter)
{
    return waiter->turn_updates;
}

void agent_waiter_end_turn(agent_waiter_t *waiter)
{
    if (waiter->turn_updates != NULL) {
        agent_lock_destroy_pool(waiter->turn_updates->pool);
        waiter->turn_updates = NULL;
    }
    if (waiter->is_dispatched) {
        agent_lock_take(waiter->registry->lock);
        agent_dispatch_end_turn_locked(waiter);
        agent_lock_release(waiter->registry->lock);
    }
}

void agent_waiter_subscribe(agent_waiter_t *waiter, apr_int64_t after)
{
    agent_lock_take(waiter->registry->lock);
    if (waiter->last_event < after) {
        waiter->last_event = after;
        agent_updates_drop_locked(waiter);
    }
    agent_lock_release(waiter->registry->lock);
}

void agent_waiter_subscribe_end(agent_waiter_t *waiter)
{
    agent_waiter_subscribe(waiter, AGENT_UPDATES_END_ONLY);
}

int agent_waiter_descriptor(const agent_waiter_t *waiter)
{
    return waiter->wake_fd;
}

void agent_waiter_forget_descriptor(agent_waiter_t *waiter)
{
    agent_lock_take(waiter->registry->lock);
    waiter->wake_fd = -1;
    agent_lock_release(waiter->registry->lock);
}

/* ---- registration ---- */

/* False: *refusal is set. */
static bool accepts_locked(agent_error_id_t *refusal,
                           const agent_waiter_registry_t *registry,
                           const agent_waiter_params_t *params)
{
    if (registry->timer.stopping) {
        *refusal = AGENT_E_SHUTTING_DOWN;
        return false;
    }
    return agent_waiter_table_accepts_locked(refusal, &registry->table, params);
}

static apr_status_t refuse(agent_error_id_t refusal,
                           const agent_waiter_params_t *params,
                           agent_error_t **err, apr_pool_t *pool)
{
    const char *cause = refusal == AGENT_E_ADDRESS_FULL
        ? apr_psprintf(pool, "AgentMaxWaitersPerAddress of %s",
                       agent_client_address_print(params->address, pool))
        : NULL;

    if (refusal == AGENT_E_LIMIT) {
        return params->is_stream
            ? agent_limit_refuse(err, AGENT_LIMIT_STREAMS,
                                 params->account.streams, pool)
            : agent_limit_refuse(err, AGENT_LIMIT_WAITING_REQUESTS,
                                 params->account.waiting, pool);
    }
    return agent_error_set(err, refusal, NULL, cause, pool);
}

apr_status_t agent_waiter_check(agent_waiter_registry_t *registry,
                                const agent_waiter_params_t *params,
                                agent_error_t **err, apr_pool_t *pool)
{
    agent_error_id_t refusal = AGENT_E_OVERLOADED;
    bool accepted;

    agent_lock_take(registry->lock);
    accepted = accepts_locked(&refusal, registry, params);
    agent_lock_release(registry->lock);
    return accepted ? APR_SUCCESS : refuse(refusal, params, err, pool);
}

static void add_locked(agent_waiter_registry_t *registry,
                       agent_waiter_t *waiter)
{
    waiter->is_registered = true;
    waiter->heartbeat_at = apr_time_now() + registry->timer.heartbeat;
    waiter->timeout_at = waiter->params.timeout > 0
        ? apr_time_now() + waiter->params.timeout
        : 0;
    agent_waiter_table_add_locked(&registry->table, waiter);
    if (waiter->params.watches_input) {
        agent_dispatch_wake_locked(waiter, AGENT_REASON_INPUT);
    }
}

static void remove_locked(agent_waiter_registry_t *registry,
                          agent_waiter_t *waiter)
{
    waiter->is_registered = false;
    agent_dispatch_end_turn_locked(waiter);
    agent_updates_drop_locked(waiter);
    agent_api_keys_remove_locked(waiter);
    agent_waiter_table_remove_locked(&registry->table, waiter);
}

void agent_waiter_unregister(agent_waiter_t *waiter)
{
    agent_waiter_registry_t *registry = waiter->registry;
    bool was_registered;

    agent_lock_take(registry->lock);
    was_registered = waiter->is_registered;
    if (was_registered) {
        remove_locked(registry, waiter);
    }
    agent_lock_release(registry->lock);
    if (was_registered && waiter->params.client_fd >= 0) {
        agent_watch_remove(registry, waiter);
    }
    agent_waiter_end_turn(waiter);
    if (waiter->wake_fd >= 0) {
        close(waiter->wake_fd);
        waiter->wake_fd = -1;
    }
}

static apr_status_t unregister_with_pool(void *waiter)
{
    agent_waiter_unregister(waiter);
    return APR_SUCCESS;
}

/* False: *refusal is set. */
static bool try_add(agent_error_id_t *refusal,
                    agent_waiter_registry_t *registry, agent_waiter_t *waiter)
{
    bool accepted;
    bool is_due_first;
    bool is_key_first = false;

    agent_lock_take(registry->lock);
    is_due_first = registry->table.count == 0;
    accepted = accepts_locked(refusal, registry, &waiter->params);
    if (accepted) {
        add_locked(registry, waiter);
        is_due_first |= APR_RING_FIRST(&registry->table.by_timeout) == waiter;
        is_key_first = agent_api_keys_add_locked(waiter);
    }
    agent_lock_release(registry->lock);
    if (is_key_first) {
        agent_api_keys_interrupt(registry->api_keys);
    }
    if (accepted && is_due_first) {
        agent_watch_interrupt(registry);
    }
    return accepted;
}

apr_status_t agent_waiter_register(agent_waiter_t **out,
                                   agent_waiter_registry_t *registry,
                                   const agent_waiter_params_t *params,
                                   agent_error_t **err, apr_pool_t *pool)
{
    agent_waiter_t *waiter = apr_pcalloc(pool, sizeof(*waiter));
    agent_error_id_t refusal = AGENT_E_OVERLOADED;

    waiter->registry = registry;
    waiter->params = *params;
    waiter->queue_key = params->deployment_id != NULL
        ? apr_pstrcat(pool, params->deployment_id, params->key, NULL)
        : params->key;
    waiter->last_event = AGENT_UPDATES_NONE;
    waiter->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    apr_pool_cleanup_register(pool, waiter, unregister_with_pool,
                              apr_pool_cleanup_null);
    if (waiter->wake_fd < 0 || !try_add(&refusal, registry, waiter)
        || (params->client_fd >= 0
            && agent_watch_add(registry, waiter) != APR_SUCCESS)) {
        agent_waiter_unregister(waiter);
        return refuse(refusal, params, err, pool);
    }
    *out = waiter;
    return APR_SUCCESS;
}
