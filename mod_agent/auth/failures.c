/* SPDX-License-Identifier: Apache-2.0 */
/* A table of addresses of fixed size; see failures.h. */
#include "failures.h"

#include <stdbool.h>
#include <string.h>

#include <apr_general.h>
#include <apr_thread_mutex.h>

#define SETS (AGENT_FAILURE_SIZE / AGENT_FAILURE_WAYS)

/* count 0: free. */
typedef struct entry_t {
    apr_uint64_t address;
    apr_time_t since;
    unsigned count;
} entry_t;

struct agent_failures_t {
    apr_thread_mutex_t *mutex;
    /* Random and odd: nobody knows which addresses share a set. */
    apr_uint64_t factor;
    entry_t sets[SETS][AGENT_FAILURE_WAYS];
};

apr_status_t agent_failures_create(agent_failures_t **out, apr_pool_t *pool)
{
    agent_failures_t *failures = apr_pcalloc(pool, sizeof(*failures));
    unsigned char random[sizeof(failures->factor)];
    apr_status_t rv = apr_generate_random_bytes(random, sizeof(random));

    memcpy(&failures->factor, random, sizeof(random));
    failures->factor |= 1;
    *out = failures;
    return rv == APR_SUCCESS ? apr_thread_mutex_create(
               &failures->mutex, APR_THREAD_MUTEX_DEFAULT, pool)
                             : rv;
}

static entry_t *get_set(agent_failures_t *failures, apr_uint64_t address)
{
    return failures->sets[(address * failures->factor >> 32) % SETS];
}

static bool is_over(const entry_t *entry, apr_time_t now)
{
    return entry->count == 0 || now - entry->since >= AGENT_FAILURE_TIME;
}

/* Returns the entry of the address; NULL: none that counts. */
static entry_t *find_locked(entry_t *set, apr_uint64_t address, apr_time_t now)
{
    for (int i = 0; i < AGENT_FAILURE_WAYS; i++) {
        if (set[i].address == address && !is_over(&set[i], now)) {
            return &set[i];
        }
    }
    return NULL;
}

/* Returns an entry that is free now: one that is over, else that with the
 * fewest failures. */
static entry_t *clear_locked(entry_t *set, apr_time_t now)
{
    entry_t *found = &set[0];

    for (int i = 1; i < AGENT_FAILURE_WAYS && !is_over(found, now); i++) {
        if (is_over(&set[i], now) || set[i].count < found->count) {
            found = &set[i];
        }
    }
    found->count = 0;
    return found;
}

apr_interval_time_t agent_failures_wait(agent_failures_t *failures,
                                        apr_uint64_t address, apr_time_t now)
{
    const entry_t *entry;
    apr_interval_time_t wait = 0;

    apr_thread_mutex_lock(failures->mutex);
    entry = find_locked(get_set(failures, address), address, now);
    if (entry != NULL && entry->count >= AGENT_FAILURE_LIMIT) {
        wait = entry->since + AGENT_FAILURE_TIME - now;
    }
    apr_thread_mutex_unlock(failures->mutex);
    return wait;
}

void agent_failures_add(agent_failures_t *failures, apr_uint64_t address,
                        apr_time_t now)
{
    entry_t *set = get_set(failures, address);
    entry_t *entry;

    apr_thread_mutex_lock(failures->mutex);
    entry = find_locked(set, address, now);
    if (entry == NULL) {
        entry = clear_locked(set, now);
        entry->address = address;
        entry->since = now;
    }
    entry->count++;
    apr_thread_mutex_unlock(failures->mutex);
}
