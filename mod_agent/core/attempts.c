/* SPDX-License-Identifier: Apache-2.0 */
/* A table of addresses of fixed size; see attempts.h. */
#include "attempts.h"

#include <stdbool.h>
#include <string.h>

#include <apr_general.h>

#include "lock.h"

#define SETS (AGENT_ATTEMPT_SIZE / AGENT_ATTEMPT_WAYS)

/* count 0: free. */
typedef struct entry_t {
    apr_uint64_t address;
    apr_time_t since;
    unsigned count;
} entry_t;

struct agent_attempts_t {
    agent_lock_t *lock;
    /* Random and odd, so that a client cannot choose addresses that share a
     * set. */
    apr_uint64_t factor;
    unsigned limit;
    apr_interval_time_t time;
    entry_t sets[SETS][AGENT_ATTEMPT_WAYS];
};

apr_status_t agent_attempts_create(agent_attempts_t **out, unsigned limit,
                                   apr_interval_time_t time, apr_pool_t *pool)
{
    agent_attempts_t *attempts = apr_pcalloc(pool, sizeof(*attempts));
    unsigned char random[sizeof(attempts->factor)];
    apr_status_t rv = apr_generate_random_bytes(random, sizeof(random));

    memcpy(&attempts->factor, random, sizeof(random));
    attempts->factor |= 1;
    attempts->limit = limit;
    attempts->time = time;
    *out = attempts;
    return rv == APR_SUCCESS ? agent_lock_create(&attempts->lock, pool) : rv;
}

static entry_t *get_set(agent_attempts_t *attempts, apr_uint64_t address)
{
    return attempts->sets[(address * attempts->factor >> 32) % SETS];
}

static bool is_over(const agent_attempts_t *attempts, const entry_t *entry,
                    apr_time_t now)
{
    return entry->count == 0 || now - entry->since >= attempts->time;
}

/* Returns the entry of the address; NULL: none that counts. */
static entry_t *find_locked(agent_attempts_t *attempts, apr_uint64_t address,
                            apr_time_t now)
{
    entry_t *set = get_set(attempts, address);

    for (int i = 0; i < AGENT_ATTEMPT_WAYS; i++) {
        if (set[i].address == address && !is_over(attempts, &set[i], now)) {
            return &set[i];
        }
    }
    return NULL;
}

/* Frees and returns an entry: one whose time is over, else the one with the
 * fewest attempts. */
static entry_t *clear_locked(agent_attempts_t *attempts, apr_uint64_t address,
                             apr_time_t now)
{
    entry_t *set = get_set(attempts, address);
    entry_t *found = &set[0];

    for (int i = 1; i < AGENT_ATTEMPT_WAYS && !is_over(attempts, found, now);
         i++) {
        if (is_over(attempts, &set[i], now) || set[i].count < found->count) {
            found = &set[i];
        }
    }
    found->count = 0;
    return found;
}

apr_interval_time_t agent_attempts_wait(agent_attempts_t *attempts,
                                        apr_uint64_t address, apr_time_t now)
{
    const entry_t *entry;
    apr_interval_time_t wait = 0;

    agent_lock_take(attempts->lock);
    entry = find_locked(attempts, address, now);
    if (entry != NULL && entry->count >= attempts->limit) {
        wait = entry->since + attempts->time - now;
    }
    agent_lock_release(attempts->lock);
    return wait;
}

void agent_attempts_add(agent_attempts_t *attempts, apr_uint64_t address,
                        apr_time_t now)
{
    entry_t *entry;

    agent_lock_take(attempts->lock);
    entry = find_locked(attempts, address, now);
    if (entry == NULL) {
        entry = clear_locked(attempts, address, now);
        entry->address = address;
        entry->since = now;
    }
    entry->count++;
    agent_lock_release(attempts->lock);
}
