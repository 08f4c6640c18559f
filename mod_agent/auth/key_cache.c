/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash of verified keys, and a ring in the order in which they were added;
 * see key_cache.h. A key is kept as a keyed hash, SipHash-2-4 under two random
 * secrets of the process: the hash is useless outside of the process, two texts
 * have the same one with a probability of 2^-128, and since no client can
 * compute the hash of a text, the time of a comparison reveals nothing about a
 * key.
 */
#include "key_cache.h"

#include <string.h>

#include <apr_general.h>
#include <apr_hash.h>
#include <apr_siphash.h>
#include <apr_strings.h>

#include "../core/lock.h"

typedef struct keyed_hash_t {
    apr_uint64_t halves[2];
} keyed_hash_t;

typedef struct entry_t {
    keyed_hash_t hash;
    /* user_id: NULL, or user. */
    agent_identity_t identity;
    char user[AGENT_KEY_USER_SIZE];
    apr_time_t until;
} entry_t;

struct agent_key_cache_t {
    unsigned char secrets[2][APR_SIPHASH_KSIZE];
    /* Protects the members below; never held during a statement. */
    agent_lock_t *lock;
    apr_hash_t *by_hash;
    /* The entries, allocated when first needed and then reused, since a pool
     * frees nothing. `next` is the oldest. */
    entry_t **entries;
    int size;
    int next;
    apr_pool_t *pool;
};

apr_time_t agent_key_cache_until(const agent_identity_t *identity)
{
    apr_time_t until = identity->checked_at + AGENT_KEY_CACHE_TIME;

    return identity->expires_at < until ? identity->expires_at : until;
}

apr_status_t agent_key_cache_create(agent_key_cache_t **out, int size,
                                    apr_pool_t *pool)
{
    agent_key_cache_t *cache = apr_pcalloc(pool, sizeof(*cache));
    apr_status_t rv = apr_generate_random_bytes((unsigned char *)cache->secrets,
                                                sizeof(cache->secrets));

    /* The hash allocates when it grows: a pool that only it uses. */
    apr_pool_create(&cache->pool, pool);
    cache->by_hash = apr_hash_make(cache->pool);
    cache->entries = apr_pcalloc(pool, (apr_size_t)size * sizeof(entry_t *));
    cache->size = size;
    *out = cache;
    return rv == APR_SUCCESS ? agent_lock_create(&cache->lock, pool) : rv;
}

static keyed_hash_t compute_hash(const agent_key_cache_t *cache,
                                 const char *text)
{
    size_t length = strlen(text);

    return (keyed_hash_t){{apr_siphash24(text, length, cache->secrets[0]),
                           apr_siphash24(text, length, cache->secrets[1])}};
}

static entry_t *find_locked(const agent_key_cache_t *cache,
                            const keyed_hash_t *hash)
{
    return apr_hash_get(cache->by_hash, hash, sizeof(*hash));
}

bool agent_key_cache_find(agent_identity_t *out, agent_key_cache_t *cache,
                          const char *text, apr_time_t now, apr_pool_t *pool)
{
    keyed_hash_t hash = compute_hash(cache, text);
    const entry_t *entry;
    bool is_found;

    agent_lock_take(cache->lock);
    entry = find_locked(cache, &hash);
    is_found = entry != NULL && now < entry->until;
    if (is_found) {
        *out = entry->identity;
        out->user_id = apr_pstrdup(pool, entry->identity.user_id);
    }
    agent_lock_release(cache->lock);
    return is_found;
}

/* Returns an entry for the key, which is in the hash then. */
static entry_t *take_locked(agent_key_cache_t *cache, const keyed_hash_t *hash)
{
    entry_t **place = &cache->entries[cache->next];

    cache->next = (cache->next + 1) % cache->size;
    if (*place == NULL) {
        *place = apr_palloc(cache->pool, sizeof(entry_t));
    }
    else if (find_locked(cache, &(*place)->hash) == *place) {
        apr_hash_set(cache->by_hash, &(*place)->hash, sizeof(*hash), NULL);
    }
    (*place)->hash = *hash;
    /* apr_hash_set() keeps the key pointer of an entry that exists: delete it
     * first. */
    apr_hash_set(cache->by_hash, hash, sizeof(*hash), NULL);
    apr_hash_set(cache->by_hash, &(*place)->hash, sizeof(*hash), *place);
    return *place;
}

void agent_key_cache_add(agent_key_cache_t *cache, const char *text,
                         const agent_identity_t *identity, apr_time_t until)
{
    size_t length = identity->user_id ? strlen(identity->user_id) : 0;
    keyed_hash_t hash = compute_hash(cache, text);
    entry_t *entry;

    if (length >= AGENT_KEY_USER_SIZE) {
        return;
    }
    agent_lock_take(cache->lock);
    entry = take_locked(cache, &hash);
    entry->identity = *identity;
    if (identity->user_id != NULL) {
        memcpy(entry->user, identity->user_id, length + 1);
        entry->identity.user_id = entry->user;
    }
    entry->until = until;
    agent_lock_release(cache->lock);
}
