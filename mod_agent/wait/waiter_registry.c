/* SPDX-License-Identifier: Apache-2.0 */
/* The waiter registry of a child: its creation, threads and end. */
#include "waiter_registry.h"

#include <fcntl.h>
#include <unistd.h>

#include "../core/allocator.h"
#include "../core/child_thread.h"
#include "api_keys.h"
#include "dispatch_queue.h"
#include "listen.h"
#include "state.h"
#include "timer.h"
#include "updates.h"
#include "waiter_table.h"
#include "watch.h"

/* Free memory that the allocator keeps. */
#define KEPT_BYTES (8 * 1024 * 1024)

static apr_status_t end_threads(void *data)
{
    agent_waiter_registry_t *registry = data;

    agent_waiter_registry_stop(registry, 0);
    close(registry->end_fds[1]);
    agent_child_thread_join(registry->listen_thread);
    agent_child_thread_join(registry->watch_thread);
    agent_child_thread_join(registry->api_keys_thread);
    agent_child_thread_join(registry->expiry_thread);
    close(registry->end_fds[0]);
    agent_api_keys_close(registry->api_keys);
    agent_watch_close(registry);
    return APR_SUCCESS;
}

static agent_waiter_registry_t *make_registry(
    agent_db_pool_t *db, const agent_waiter_limits_t *limits,
    const agent_log_t *log, apr_pool_t *pool)
{
    agent_waiter_registry_t *registry = apr_pcalloc(pool, sizeof(*registry));
    apr_pool_t *tables = agent_allocator_make_private(pool);

    registry->log = *log;
    registry->timer.heartbeat = limits->heartbeat;
    registry->timer.is_ending = limits->is_ending;
    registry->timer.grace = limits->grace;
    registry->dispatch.threads = limits->threads;
    agent_dispatch_queue_init(&registry->dispatch, tables);
    agent_waiter_table_init(&registry->table, limits, tables);
    registry->api_keys = agent_api_keys_make(db, tables, pool);
    return registry;
}

static apr_status_t open_descriptors(agent_waiter_registry_t *registry)
{
    apr_status_t rv;

    if (pipe2(registry->end_fds, O_CLOEXEC) != 0) {
        return apr_get_os_error();
    }
    rv = agent_watch_open(registry);
    return rv == APR_SUCCESS ? agent_api_keys_open(registry->api_keys) : rv;
}

static apr_status_t start_threads(agent_waiter_registry_t *registry,
                                  apr_pool_t *pool)
{
    apr_status_t rv = agent_child_thread_start(
        &registry->listen_thread, agent_listen_run, registry, pool);

    if (rv == APR_SUCCESS) {
        rv = agent_child_thread_start(&registry->watch_thread, agent_watch_run,
                                      registry, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = agent_child_thread_start(&registry->api_keys_thread,
                                      agent_api_keys_run, registry, pool);
    }
    return rv == APR_SUCCESS
        ? agent_child_thread_start(&registry->expiry_thread,
                                   agent_api_keys_run_expiries, registry, pool)
        : rv;
}

apr_status_t agent_waiter_registry_create(agent_waiter_registry_t **out,
                                          const char *conninfo,
                                          agent_db_pool_t *db,
                                          const agent_waiter_limits_t *limits,
                                          const agent_log_t *log,
                                          apr_pool_t *pool)
{
    agent_waiter_registry_t *registry = make_registry(db, limits, log, pool);
    apr_status_t rv = agent_lock_create(&registry->lock, pool);

    /* Shared by all turns and events: APR gets memory with mmap(), which slows
     * down every thread of the process. */
    if (rv == APR_SUCCESS) {
        rv = agent_allocator_create(&registry->allocator, KEPT_BYTES, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = open_descriptors(registry);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    agent_updates_init(&registry->updates, db, pool);
    agent_listen_init(registry, conninfo, pool);
    /* Before subpools are destroyed: the threads still use them. */
    apr_pool_pre_cleanup_register(pool, registry, end_threads);
    *out = registry;
    return start_threads(registry, pool);
}

void agent_waiter_registry_stop(agent_waiter_registry_t *registry,
                                apr_interval_time_t grace)
{
    agent_lock_take(registry->lock);
    agent_timer_stop_locked(registry, grace);
    agent_lock_release(registry->lock);
    agent_watch_interrupt(registry);
}

apr_pool_t *agent_waiter_registry_make_pool(agent_waiter_registry_t *registry)
{
    return agent_allocator_make_pool(
        agent_lock_choose_allocator(registry->allocator));
}
