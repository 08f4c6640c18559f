/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of verified keys, and a ring in the order in which they were added;
 * see cache.h. */
#include "cache.h"

#include <string.h>

#include <apr_hash.h>
#include <apr_strings.h>

#include "../core/lock.h"

typedef struct entry_t {
    unsigned char digest[AGENT_API_KEY_DIGEST_BYTES];
    /* user_id: NULL, or user. */
    agent_identity_t identity;
    char user[AGENT_KEY_USER_SIZE];
    apr_time_t until;
} entry_t;

struct agent_key_cache_t {
    /* Protects the members below; never held during a statement. */
    agent_lock_t *lock;
    apr_hash_t *by_digest;
    /* The entries, made when they are first needed: a pool frees none. The
     * next one to be used is the oldest. */
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

    /* The hash allocates when it grows: a pool that only it uses. */
    apr_pool_create(&cache->pool, pool);
    cache->by_digest = apr_hash_make(cache->pool);
    cache->entries = apr_pcalloc(pool, (apr_size_t)size * sizeof(entry_t *));
    cache->size = size;
    *out = cache;
    return agent_lock_create(&cache->lock, pool);
}

static entry_t *find_locked(const agent_key_cache_t *cache,
                            const unsigned char *digest)
{
    return apr_hash_get(cache->by_digest, digest, AGENT_API_KEY_DIGEST_BYTES);
}

bool agent_key_cache_find(agent_identity_t *out, agent_key_cache_t *cache,
                          const unsigned char *digest, apr_time_t now,
                          apr_pool_t *pool)
{
    const entry_t *entry;
    bool is_found;

    agent_lock_take(cache->lock);
    entry = find_locked(cache, digest);
    is_found = entry != NULL && now < entry->until;
    if (is_found) {
        *out = entry->identity;
        out->user_id = apr_pstrdup(pool, entry->identity.user_id);
    }
    agent_lock_release(cache->lock);
    return is_found;
}

/* Returns an entry for the key, which is in the hash then. */
static entry_t *take_locked(agent_key_cache_t *cache,
                            const unsigned char *digest)
{
    entry_t **place = &cache->entries[cache->next];

    cache->next = (cache->next + 1) % cache->size;
    if (*place == NULL) {
        *place = apr_palloc(cache->pool, sizeof(entry_t));
    }
    else if (find_locked(cache, (*place)->digest) == *place) {
        apr_hash_set(cache->by_digest, (*place)->digest,
                     AGENT_API_KEY_DIGEST_BYTES, NULL);
    }
    memcpy((*place)->digest, digest, AGENT_API_KEY_DIGEST_BYTES);
    /* The key of an entry that the hash has for it would be another one's. */
    apr_hash_set(cache->by_digest, digest, AGENT_API_KEY_DIGEST_BYTES, NULL);
    apr_hash_set(cache->by_digest, (*place)->digest, AGENT_API_KEY_DIGEST_BYTES,
                 *place);
    return *place;
}

void agent_key_cache_add(agent_key_cache_t *cache, const unsigned char *digest,
                         const agent_identity_t *identity, apr_time_t until)
{
    size_t length = identity->user_id ? strlen(identity->user_id) : 0;
    entry_t *entry;

    if (length >= AGENT_KEY_USER_SIZE) {
        return;
    }
    agent_lock_take(cache->lock);
    entry = take_locked(cache, digest);
    entry->identity = *identity;
    if (identity->user_id != NULL) {
        memcpy(entry->user, identity->user_id, length + 1);
        entry->identity.user_id = entry->user;
    }
    entry->until = until;
    agent_lock_release(cache->lock);
}
