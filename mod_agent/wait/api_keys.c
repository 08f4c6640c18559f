/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends waiting requests whose API key is no longer valid; see api_keys.h. A
 * failed statement ends none: while the database is unreachable, keys stay
 * valid until they expire, which needs no database.
 */
#include "api_keys.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../core/allocator.h"
#include "../core/clock.h"
#include "../db/pool.h"
#include "dispatch.h"

/* Time between two checks of a key, by a request or by this thread: less than
 * the 2 s within which a revocation takes effect. */
#define INTERVAL apr_time_from_msec(1500)
/* At least, between two statements. */
#define PAUSE apr_time_from_msec(250)
/* Up to this many keys are all checked in one statement as soon as one is due,
 * which takes fewer statements. With more keys each one is checked when it is
 * due itself: otherwise every new key would cause a check of all others. */
#define FEW 100

/* The descriptors that wake a thread. */
typedef struct alarm_t {
    int interrupt_fd;
    /* -1: the kernel has no such timer. */
    int timer_fd;
} alarm_t;

struct agent_api_keys_t {
    agent_db_pool_t *db;
    /* Of the thread that queries the database, and of the one for expiries. */
    alarm_t check;
    alarm_t expiry;
    /* The members below are protected by the registry's lock. */
    apr_hash_t *by_id; /* ID of the key -> one of its waiters */
    /* Times of agent_clock_boot_now(): when the first key is due for a check,
     * until when the database is not queried, and when the first key
     * expires. */
    apr_time_t check_at;
    apr_time_t pause_until;
    apr_time_t expire_at;
};

agent_api_keys_t *agent_api_keys_make(agent_db_pool_t *db, apr_pool_t *tables,
                                      apr_pool_t *pool)
{
    agent_api_keys_t *keys = apr_pcalloc(pool, sizeof(*keys));

    keys->db = db;
    keys->by_id = apr_hash_make(tables);
    keys->check_at = AGENT_CLOCK_NEVER;
    keys->expire_at = AGENT_CLOCK_NEVER;
    keys->check = (alarm_t){-1, -1};
    keys->expiry = (alarm_t){-1, -1};
    return keys;
}

static bool open_alarm(alarm_t *alarm)
{
    alarm->timer_fd = agent_clock_timer_open();
    alarm->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return alarm->interrupt_fd >= 0;
}

apr_status_t agent_api_keys_open(agent_api_keys_t *keys)
{
    return open_alarm(&keys->check) && open_alarm(&keys->expiry)
        ? APR_SUCCESS
        : apr_get_os_error();
}

static void close_alarm(const alarm_t *alarm)
{
    close(alarm->interrupt_fd);
    close(alarm->timer_fd);
}

void agent_api_keys_close(const agent_api_keys_t *keys)
{
    close_alarm(&keys->check);
    close_alarm(&keys->expiry);
}

void agent_api_keys_interrupt(const agent_api_keys_t *keys)
{
    (void)!eventfd_write(keys->check.interrupt_fd, 1);
    (void)!eventfd_write(keys->expiry.interrupt_fd, 1);
}

/* ---- the waiters of each key ---- */

static const char *read_id(const agent_waiter_t *waiter)
{
    return waiter->params.identity->key_id;
}

static bool take_earlier(apr_time_t *time, apr_time_t other)
{
    bool is_earlier = other < *time;

    *time = is_earlier ? other : *time;
    return is_earlier;
}

/* The hash borrows the key's ID from this waiter. */
static void add_key_locked(const agent_api_keys_t *keys, agent_waiter_t *waiter)
{
    apr_hash_set(keys->by_id, read_id(waiter), APR_HASH_KEY_STRING, waiter);
}

static void remove_key_locked(const agent_api_keys_t *keys,
                              const agent_waiter_t *waiter)
{
    apr_hash_set(keys->by_id, read_id(waiter), APR_HASH_KEY_STRING, NULL);
}

bool agent_api_keys_add_locked(agent_waiter_t *waiter)
{
    agent_api_keys_t *keys = waiter->registry->api_keys;
    const agent_identity_t *identity = waiter->params.identity;
    agent_waiter_t *first;
    bool is_due = false;

    if (identity == NULL) {
        return false;
    }
    waiter->has_key = true;
    waiter->key_check_at = identity->checked_at + INTERVAL;
    waiter->key_expires_at = identity->expires_at;
    APR_RING_ELEM_INIT(waiter, same_key);
    first = apr_hash_get(keys->by_id, read_id(waiter), APR_HASH_KEY_STRING);
    if (first != NULL) {
        APR_RING_INSERT_AFTER(first, waiter, same_key);
        /* The key may have been given an expiry since its first waiter was
         * added. */
        take_earlier(&first->key_expires_at, identity->expires_at);
        if (first->key_check_at < waiter->key_check_at) {
            first->key_check_at = waiter->key_check_at;
        }
    }
    else {
        add_key_locked(keys, waiter);
        is_due = take_earlier(&keys->check_at, waiter->key_check_at);
    }
    return take_earlier(&keys->expire_at, identity->expires_at) || is_due;
}

void agent_api_keys_remove_locked(agent_waiter_t *waiter)
{
    const agent_api_keys_t *keys = waiter->registry->api_keys;
    agent_waiter_t *next;

    if (!waiter->has_key) {
        return;
    }
    waiter->has_key = false;
    next = APR_RING_NEXT(waiter, same_key);
    if (apr_hash_get(keys->by_id, read_id(waiter), APR_HASH_KEY_STRING)
        == waiter) {
        remove_key_locked(keys, waiter);
        if (next != waiter) {
            next->key_check_at = waiter->key_check_at;
            next->key_expires_at = waiter->key_expires_at;
            add_key_locked(keys, next);
        }
    }
    APR_RING_REMOVE(waiter, same_key);
}

/* Wakes all waiters of the key of this one, which is in the hash. */
static void end_key_locked(agent_api_keys_t *keys, agent_waiter_t *first)
{
    agent_waiter_t *next;

    remove_key_locked(keys, first);
    while ((next = APR_RING_NEXT(first, same_key)) != first) {
        APR_RING_REMOVE(next, same_key);
        next->has_key = false;
        agent_dispatch_wake_locked(next, AGENT_REASON_KEY_INVALID);
    }
    first->has_key = false;
    agent_dispatch_wake_locked(first, AGENT_REASON_KEY_INVALID);
}

/* Sets expire_at anew. */
static void end_expired_locked(agent_api_keys_t *keys, apr_time_t now)
{
    apr_hash_index_t *index = apr_hash_first(NULL, keys->by_id);

    keys->expire_at = AGENT_CLOCK_NEVER;
    for (; index != NULL; index = apr_hash_next(index)) {
        agent_waiter_t *waiter = apr_hash_this_val(index);

        if (waiter->key_expires_at <= now) {
            end_key_locked(keys, waiter);
        }
        else {
            take_earlier(&keys->expire_at, waiter->key_expires_at);
        }
    }
}

/* ---- the statement ---- */

static const agent_statement_t find_invalid_keys_statement = {
    .name = "agent_find_invalid_keys",
    .params = 1,
    .is_repeatable = true,
    .sql = "select key_id from agent.find_invalid_keys($1)"};

/* Returns the IDs of the keys that are due, in pool, and begins their next
 * interval now, since the statement reads a state at least as new as this. */
static apr_array_header_t *take_due_locked(agent_api_keys_t *keys,
                                           apr_time_t now, apr_pool_t *pool)
{
    apr_array_header_t *ids = apr_array_make(pool, 16, sizeof(const char *));
    bool takes_all = apr_hash_count(keys->by_id) <= FEW;
    apr_hash_index_t *index = apr_hash_first(NULL, keys->by_id);

    keys->check_at = AGENT_CLOCK_NEVER;
    /* Bounded: the waiters. */
    for (; index != NULL; index = apr_hash_next(index)) {
        agent_waiter_t *waiter = apr_hash_this_val(index);

        if (takes_all || waiter->key_check_at <= now) {
            APR_ARRAY_PUSH(ids, const char *) = apr_pstrdup(pool,
                                                            read_id(waiter));
            waiter->key_check_at = now + INTERVAL;
        }
        take_earlier(&keys->check_at, waiter->key_check_at);
    }
    return ids;
}

/* Makes keys due again that were not checked. */
static void return_due_locked(agent_api_keys_t *keys,
                              const apr_array_header_t *ids)
{
    keys->check_at = agent_clock_boot_now();
    for (int i = 0; i < ids->nelts; i++) {
        agent_waiter_t *first = apr_hash_get(
            keys->by_id, APR_ARRAY_IDX(ids, i, const char *),
            APR_HASH_KEY_STRING);

        if (first != NULL) {
            first->key_check_at = keys->check_at;
        }
    }
}

static void check_keys(agent_waiter_registry_t *registry,
                       const apr_array_header_t *ids, apr_pool_t *scratch)
{
    agent_api_keys_t *keys = registry->api_keys;
    const char *params[] = {agent_db_array((const char *const *)ids->elts,
                                           (apr_size_t)ids->nelts, scratch)};
    agent_db_result_t *result = NULL;
    agent_error_t *err;
    apr_status_t rv = agent_db_pool_query(
        &result, keys->db, &find_invalid_keys_statement, params, &err, scratch);

    agent_lock_take(registry->lock);
    /* The pool has waited for a connection. */
    if (rv != APR_SUCCESS && err->id == AGENT_E_POOL_EXHAUSTED) {
        return_due_locked(keys, ids);
    }
    for (int row = 0; rv == APR_SUCCESS && row < agent_db_rows(result); row++) {
        agent_waiter_t *first = apr_hash_get(
            keys->by_id, agent_db_value(result, row, 0), APR_HASH_KEY_STRING);

        if (first != NULL) {
            end_key_locked(keys, first);
        }
    }
    agent_lock_release(registry->lock);
}

/* ---- the threads ---- */

/* Asks for the keys that are due. */
static void check_due(agent_waiter_registry_t *registry)
{
    agent_api_keys_t *keys = registry->api_keys;
    apr_time_t now = agent_clock_boot_now();
    apr_pool_t *scratch = agent_allocator_make_pool(registry->allocator);
    apr_array_header_t *ids = NULL;

    agent_lock_take(registry->lock);
    if (keys->check_at <= now && now >= keys->pause_until) {
        ids = take_due_locked(keys, now, scratch);
        keys->pause_until = now + PAUSE;
    }
    agent_lock_release(registry->lock);
    if (ids != NULL && ids->nelts > 0) {
        check_keys(registry, ids, scratch);
    }
    apr_pool_destroy(scratch);
}

static void end_expired(agent_waiter_registry_t *registry)
{
    agent_api_keys_t *keys = registry->api_keys;
    apr_time_t now = agent_clock_boot_now();

    agent_lock_take(registry->lock);
    if (keys->expire_at <= now) {
        end_expired_locked(keys, now);
    }
    agent_lock_release(registry->lock);
}

static apr_time_t check_time_locked(const agent_api_keys_t *keys)
{
    /* Without keys check_at is never. */
    return keys->check_at > keys->pause_until ? keys->check_at
                                              : keys->pause_until;
}

static apr_time_t expiry_time_locked(const agent_api_keys_t *keys)
{
    return keys->expire_at;
}

/* The timeout of poll(), rounded up; -1 = no limit, since the timer ends the
 * wait. The clock of poll() stops while the host is suspended. */
static int compute_timeout_ms(const alarm_t *alarm, apr_time_t due)
{
    apr_interval_time_t left;

    if (agent_clock_timer_set(alarm->timer_fd, due)
        || due == AGENT_CLOCK_NEVER) {
        return -1;
    }
    left = (due - agent_clock_boot_now() + 999) / 1000;
    if (left <= 0) {
        return 0;
    }
    /* A key may expire in a month. */
    return left < APR_INT32_MAX ? (int)left : APR_INT32_MAX;
}

/* Calls act whenever something is due, until the registry ends. */
static void run_at(agent_waiter_registry_t *registry, const alarm_t *alarm,
                   void (*act)(agent_waiter_registry_t *registry),
                   apr_time_t (*time_locked)(const agent_api_keys_t *keys))
{
    struct pollfd fds[] = {{.fd = registry->end_fds[0], .events = POLLIN},
                           {.fd = alarm->interrupt_fd, .events = POLLIN},
                           {.fd = alarm->timer_fd, .events = POLLIN}};

    do {
        apr_time_t due;
        eventfd_t count;

        act(registry);
        agent_lock_take(registry->lock);
        due = time_locked(registry->api_keys);
        agent_lock_release(registry->lock);
        fds[0].revents = 0;
        (void)!poll(fds, 3, compute_timeout_ms(alarm, due));
        (void)!eventfd_read(alarm->interrupt_fd, &count);
    } while (fds[0].revents == 0);
}

void *APR_THREAD_FUNC agent_api_keys_run(apr_thread_t *thread, void *data)
{
    agent_waiter_registry_t *registry = data;

    run_at(registry, &registry->api_keys->check, check_due, check_time_locked);
    return NULL;
}

void *APR_THREAD_FUNC agent_api_keys_run_expiries(apr_thread_t *thread,
                                                  void *data)
{
    agent_waiter_registry_t *registry = data;

    run_at(registry, &registry->api_keys->expiry, end_expired,
           expiry_time_locked);
    return NULL;
}
