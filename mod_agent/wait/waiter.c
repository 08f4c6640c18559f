/* SPDX-License-Identifier: Apache-2.0 */
/* The waiters of a child, and the threads that wake them; see wait.h. */
#include "state.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../core/allocator.h"
#include "dispatch.h"

/* Free memory that the allocator does not give back. */
#define KEPT_BYTES (8 * 1024 * 1024)

/* ---- turns ---- */

static void destroy_events(apr_array_header_t *events)
{
    if (events != NULL) {
        apr_pool_destroy(events->pool);
    }
}

void agent_wait_drop_coming_locked(agent_waiter_t *waiter)
{
    waiter->reasons &= ~(1U << AGENT_WAIT_NEWS);
    destroy_events(waiter->coming);
    waiter->coming = NULL;
    waiter->coming_bytes = 0;
}

static agent_wait_t take_locked(agent_waiter_t *waiter)
{
    unsigned reasons = waiter->reasons;
    agent_wait_t first = AGENT_WAIT_GONE;

    agent_wait_begin_turn_locked(waiter);
    waiter->taken = waiter->coming;
    waiter->coming = NULL;
    waiter->coming_bytes = 0;
    while (first < AGENT_WAIT_NOTHING && (reasons & 1U << first) == 0) {
        first++;
    }
    waiter->reasons = first < AGENT_WAIT_INPUT
        ? reasons & 1U << AGENT_WAIT_INPUT
        : 0;
    /* A look alone may show nothing. */
    return (reasons & 1U << AGENT_WAIT_SIGN) != 0 && first < AGENT_WAIT_SIGN
            && first > AGENT_WAIT_HEARTBEAT
        ? AGENT_WAIT_HEARTBEAT
        : first;
}

agent_wait_t agent_wait_take(agent_waiter_t *waiter)
{
    agent_wait_t reason;
    eventfd_t count;

    apr_thread_mutex_lock(waiter->waits->mutex);
    reason = take_locked(waiter);
    if (waiter->reasons == 0) {
        (void)!eventfd_read(waiter->wake_fd, &count);
    }
    apr_thread_mutex_unlock(waiter->waits->mutex);
    return reason;
}

bool agent_wait_keep_thread(agent_waiter_t *waiter)
{
    bool may;

    apr_thread_mutex_lock(waiter->waits->mutex);
    may = agent_wait_keep_thread_locked(waiter);
    apr_thread_mutex_unlock(waiter->waits->mutex);
    return may;
}

/* One that is out was dispatched: whoever is queued comes after it. */
agent_wait_t agent_wait_take_or_rest(agent_waiter_t *waiter, bool has_more)
{
    agent_wait_t reason = AGENT_WAIT_NOTHING;
    eventfd_t count;

    apr_thread_mutex_lock(waiter->waits->mutex);
    (void)!eventfd_read(waiter->wake_fd, &count);
    if (has_more) {
        waiter->reasons |= 1U << AGENT_WAIT_WOKEN;
    }
    /* What it was woken for was found by an earlier turn. */
    if (waiter->is_out && waiter->reasons == 0) {
        agent_wait_end_turn_locked(waiter);
    }
    if (waiter->is_out || !agent_wait_rest_locked(waiter)) {
        reason = take_locked(waiter);
    }
    apr_thread_mutex_unlock(waiter->waits->mutex);
    return reason;
}

/* Not a condition variable: the prefork MPM ends a child from a signal handler,
 * and what somebody waits for cannot be destroyed by himself. */
agent_wait_t agent_wait_block(agent_waiter_t *waiter, int timeout_ms)
{
    struct pollfd waker = {.fd = waiter->wake_fd, .events = POLLIN};

    return poll(&waker, 1, timeout_ms) > 0 ? agent_wait_take(waiter)
                                           : AGENT_WAIT_NOTHING;
}

const apr_array_header_t *agent_wait_news(const agent_waiter_t *waiter)
{
    return waiter->taken;
}

void agent_wait_end_turn(agent_waiter_t *waiter)
{
    destroy_events(waiter->taken);
    waiter->taken = NULL;
    if (waiter->is_out) {
        apr_thread_mutex_lock(waiter->waits->mutex);
        agent_wait_end_turn_locked(waiter);
        apr_thread_mutex_unlock(waiter->waits->mutex);
    }
}

void agent_wait_bring_news(agent_waiter_t *waiter, apr_int64_t after)
{
    apr_thread_mutex_lock(waiter->waits->mutex);
    if (waiter->brought < after) {
        waiter->brought = after;
        agent_wait_drop_coming_locked(waiter);
    }
    apr_thread_mutex_unlock(waiter->waits->mutex);
}

void agent_wait_expect_end(agent_waiter_t *waiter)
{
    agent_wait_bring_news(waiter, AGENT_WAIT_END_ONLY);
}

int agent_wait_descriptor(const agent_waiter_t *waiter)
{
    return waiter->wake_fd;
}

void agent_wait_lose_descriptor(agent_waiter_t *waiter)
{
    apr_thread_mutex_lock(waiter->waits->mutex);
    waiter->wake_fd = -1;
    apr_thread_mutex_unlock(waiter->waits->mutex);
}

/* ---- entering and leaving ---- */

/* The key of a chain must be the text of its first waiter, which lives as long
 * as it leads. */
static void lead_chain_locked(agent_waits_t *waits, agent_waiter_t *first)
{
    apr_hash_set(waits->by_key, first->entry.key, APR_HASH_KEY_STRING, NULL);
    apr_hash_set(waits->by_key, first->entry.key, APR_HASH_KEY_STRING, first);
}

static int *find_free_locked(agent_waits_t *waits, bool parked)
{
    return parked ? &waits->free_parked : &waits->free_blocked;
}

static agent_addresses_t *get_addresses(agent_waits_t *waits, bool parked)
{
    return parked ? &waits->parked_addresses : &waits->blocked_addresses;
}

/* The address may not have one more. */
static bool is_full_locked(agent_waits_t *waits, bool parked,
                           apr_uint64_t address)
{
    int most = parked ? waits->parked_per_address : waits->blocked_per_address;

    return most != 0
        && agent_addresses_count(get_addresses(waits, parked), address) >= most;
}

/* AGENT_E_COUNT = there is room. */
static agent_error_id_t check_locked(agent_waits_t *waits, bool parked,
                                     apr_uint64_t address)
{
    if (waits->stopping) {
        return AGENT_E_SHUTTING_DOWN;
    }
    if (*find_free_locked(waits, parked) <= 0) {
        return AGENT_E_OVERLOADED;
    }
    return is_full_locked(waits, parked, address) ? AGENT_E_ADDRESS_FULL
                                                  : AGENT_E_COUNT;
}

static apr_status_t refuse(agent_error_id_t refusal, apr_uint64_t address,
                           agent_error_t **err, apr_pool_t *pool)
{
    const char *cause = refusal == AGENT_E_ADDRESS_FULL
        ? apr_psprintf(pool, "AgentMaxWaitersPerAddress of %s",
                       agent_address_print(address, pool))
        : NULL;

    return agent_error_set(err, refusal, NULL, cause, pool);
}

apr_status_t agent_wait_check(agent_waits_t *waits, bool parked,
                              apr_uint64_t address, agent_error_t **err,
                              apr_pool_t *pool)
{
    agent_error_id_t refusal;

    apr_thread_mutex_lock(waits->mutex);
    refusal = check_locked(waits, parked, address);
    apr_thread_mutex_unlock(waits->mutex);
    return refusal == AGENT_E_COUNT ? APR_SUCCESS
                                    : refuse(refusal, address, err, pool);
}

static void enter_locked(agent_waits_t *waits, agent_waiter_t *waiter)
{
    waiter->entered = true;
    waiter->serial = ++waits->last_serial;
    waiter->next = apr_hash_get(waits->by_key, waiter->entry.key,
                                APR_HASH_KEY_STRING);
    lead_chain_locked(waits, waiter);
    waiter->heartbeat_at = apr_time_now() + waits->heartbeat;
    APR_RING_INSERT_TAIL(&waits->by_heartbeat, waiter, agent_waiter_t, link);
    waits->count++;
    --*find_free_locked(waits, waiter->entry.parked);
    agent_addresses_enter(get_addresses(waits, waiter->entry.parked),
                          waiter->entry.address);
    if (waiter->entry.client_fd >= 0) {
        apr_hash_set(waits->by_serial, &waiter->serial, sizeof(waiter->serial),
                     waiter);
    }
    if (waiter->entry.watches_input) {
        agent_wait_wake_locked(waiter, AGENT_WAIT_INPUT);
    }
}

static void unchain_locked(agent_waits_t *waits, const agent_waiter_t *waiter)
{
    agent_waiter_t *first = apr_hash_get(waits->by_key, waiter->entry.key,
                                         APR_HASH_KEY_STRING);
    agent_waiter_t **link = &first;

    while (*link != waiter) {
        link = &(*link)->next;
    }
    *link = waiter->next;
    apr_hash_set(waits->by_key, waiter->entry.key, APR_HASH_KEY_STRING, NULL);
    if (first != NULL) {
        lead_chain_locked(waits, first);
    }
}

static void leave_locked(agent_waits_t *waits, agent_waiter_t *waiter)
{
    waiter->entered = false;
    agent_wait_end_turn_locked(waiter);
    agent_wait_drop_coming_locked(waiter);
    unchain_locked(waits, waiter);
    APR_RING_REMOVE(waiter, link);
    waits->count--;
    ++*find_free_locked(waits, waiter->entry.parked);
    agent_addresses_leave(get_addresses(waits, waiter->entry.parked),
                          waiter->entry.address);
    if (waiter->entry.client_fd >= 0) {
        apr_hash_set(waits->by_serial, &waiter->serial, sizeof(waiter->serial),
                     NULL);
    }
}

void agent_wait_leave(agent_waiter_t *waiter)
{
    agent_waits_t *waits = waiter->waits;
    bool was_entered;

    apr_thread_mutex_lock(waits->mutex);
    was_entered = waiter->entered;
    if (was_entered) {
        leave_locked(waits, waiter);
    }
    apr_thread_mutex_unlock(waits->mutex);
    if (was_entered && waiter->entry.client_fd >= 0) {
        agent_wait_forget_client(waits, waiter);
    }
    agent_wait_end_turn(waiter);
    if (waiter->wake_fd >= 0) {
        close(waiter->wake_fd);
        waiter->wake_fd = -1;
    }
}

static apr_status_t leave_with_pool(void *waiter)
{
    agent_wait_leave(waiter);
    return APR_SUCCESS;
}

/* AGENT_E_COUNT = it is in. */
static agent_error_id_t try_enter(agent_waits_t *waits, agent_waiter_t *waiter)
{
    agent_error_id_t refusal;
    bool is_first;

    apr_thread_mutex_lock(waits->mutex);
    is_first = APR_RING_EMPTY(&waits->by_heartbeat, agent_waiter_t, link);
    refusal = check_locked(waits, waiter->entry.parked, waiter->entry.address);
    if (refusal == AGENT_E_COUNT) {
        enter_locked(waits, waiter);
    }
    apr_thread_mutex_unlock(waits->mutex);
    if (refusal == AGENT_E_COUNT && is_first) {
        agent_wait_nudge(waits);
    }
    return refusal;
}

apr_status_t agent_wait_enter(agent_waiter_t **out, agent_waits_t *waits,
                              const agent_wait_entry_t *entry,
                              agent_error_t **err, apr_pool_t *pool)
{
    agent_waiter_t *waiter = apr_pcalloc(pool, sizeof(*waiter));
    agent_error_id_t refusal = AGENT_E_OVERLOADED;

    waiter->waits = waits;
    waiter->entry = *entry;
    waiter->brought = AGENT_WAIT_NO_NEWS;
    waiter->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waiter->wake_fd >= 0) {
        apr_pool_cleanup_register(pool, waiter, leave_with_pool,
                                  apr_pool_cleanup_null);
        refusal = try_enter(waits, waiter);
    }
    if (refusal == AGENT_E_COUNT && entry->client_fd >= 0
        && agent_wait_watch_client(waits, waiter) != APR_SUCCESS) {
        refusal = AGENT_E_OVERLOADED;
    }
    if (refusal != AGENT_E_COUNT) {
        agent_wait_leave(waiter);
        return refuse(refusal, entry->address, err, pool);
    }
    *out = waiter;
    return APR_SUCCESS;
}

/* ---- life of the threads ---- */

/* The MPM's signals are for its own threads. */
static apr_status_t start_thread(apr_thread_t **out, apr_thread_start_t run,
                                 agent_waits_t *waits, apr_pool_t *pool)
{
    apr_status_t rv;
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rv = apr_thread_create(out, NULL, run, waits, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rv;
}

static void join_thread(apr_thread_t *thread)
{
    apr_status_t status;

    if (thread != NULL) {
        apr_thread_join(&status, thread);
    }
}

static apr_status_t end_threads(void *data)
{
    agent_waits_t *waits = data;

    agent_waits_stop(waits, 0);
    close(waits->end_fds[1]);
    join_thread(waits->hear_thread);
    join_thread(waits->watch_thread);
    close(waits->end_fds[0]);
    close(waits->nudge_fd);
    close(waits->epoll_fd);
    return APR_SUCCESS;
}

apr_pool_t *agent_waits_make_pool(agent_waits_t *waits)
{
    return agent_allocator_make_pool(waits->allocator);
}

static agent_waits_t *make_waits(const agent_waits_limits_t *limits,
                                 const agent_log_t *log, apr_pool_t *pool)
{
    agent_waits_t *waits = apr_pcalloc(pool, sizeof(*waits));
    apr_pool_t *tables = agent_allocator_make_apart(pool);

    waits->log = *log;
    waits->heartbeat = limits->heartbeat;
    waits->free_parked = limits->parked;
    waits->free_blocked = limits->blocked;
    waits->parked_per_address = limits->parked_per_address;
    waits->blocked_per_address = limits->blocked_per_address;
    agent_addresses_make(&waits->parked_addresses, tables);
    agent_addresses_make(&waits->blocked_addresses, tables);
    waits->threads = limits->threads;
    waits->is_ending = limits->is_ending;
    waits->grace = limits->grace;
    waits->by_key = apr_hash_make(tables);
    waits->by_serial = apr_hash_make(tables);
    waits->lines = apr_hash_make(tables);
    APR_RING_INIT(&waits->by_heartbeat, agent_waiter_t, link);
    APR_RING_INIT(&waits->woken, agent_waiter_t, queue);
    return waits;
}

apr_status_t agent_waits_create(agent_waits_t **out, const char *conninfo,
                                agent_pool_t *db,
                                const agent_waits_limits_t *limits,
                                const agent_log_t *log, apr_pool_t *pool)
{
    agent_waits_t *waits = make_waits(limits, log, pool);
    apr_status_t rv = apr_thread_mutex_create(&waits->mutex,
                                              APR_THREAD_MUTEX_DEFAULT, pool);

    /* One for all turns and events: APR takes memory from the system with
     * mmap, which costs every thread of the process some time. */
    if (rv == APR_SUCCESS) {
        rv = agent_allocator_create(&waits->allocator, KEPT_BYTES, pool);
    }
    if (rv == APR_SUCCESS && pipe2(waits->end_fds, O_CLOEXEC) != 0) {
        rv = apr_get_os_error();
    }
    if (rv == APR_SUCCESS) {
        rv = agent_wait_open_watch(waits);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    waits->db = db;
    agent_wait_make_wanted(waits, pool);
    waits->listener = agent_wait_make_listener(waits, conninfo, pool);
    /* Before the pool's own end: the threads still use what is in it. */
    apr_pool_pre_cleanup_register(pool, waits, end_threads);
    rv = start_thread(&waits->hear_thread, agent_wait_hear, waits, pool);
    if (rv == APR_SUCCESS) {
        rv = start_thread(&waits->watch_thread, agent_wait_watch, waits, pool);
    }
    *out = waits;
    return rv;
}

static void stop_streams_locked(agent_waits_t *waits)
{
    agent_waiter_t *waiter;

    APR_RING_FOREACH(waiter, &waits->by_heartbeat, agent_waiter_t, link)
    {
        if (waiter->entry.is_stream) {
            agent_wait_wake_locked(waiter, AGENT_WAIT_STOPPING);
        }
    }
}

void agent_wait_stop_locked(agent_waits_t *waits, apr_interval_time_t grace)
{
    waits->stopping = true;
    waits->stop_at = apr_time_now() + grace;
    stop_streams_locked(waits);
}

void agent_waits_stop(agent_waits_t *waits, apr_interval_time_t grace)
{
    apr_thread_mutex_lock(waits->mutex);
    agent_wait_stop_locked(waits, grace);
    apr_thread_mutex_unlock(waits->mutex);
    agent_wait_nudge(waits);
}
