/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches the keys that a child has verified, for AGENT_KEY_CACHE_TIME. Within
 * that time a revocation takes effect in every child of every host, even if
 * notifications are lost. All functions may be called by any thread.
 */
#ifndef AGENT_AUTH_KEY_CACHE_H
#define AGENT_AUTH_KEY_CACHE_H

#include <stdbool.h>

#include <apr_pools.h>
#include <apr_time.h>

#include "../core/identity.h"

#define AGENT_KEY_CACHE_TIME apr_time_from_sec(2)
/* Capacity in keys; the oldest entry is evicted for a new one. */
#define AGENT_KEY_CACHE_SIZE 4096
/* Of a user id, with its NUL: 200 characters of 4 bytes. A longer one is not
 * kept. */
#define AGENT_KEY_USER_SIZE 801

typedef struct agent_key_cache_t agent_key_cache_t;

/* Returns the time until which an identity may be used without a query: the end
 * of its time in the cache, or its expiry if that is earlier. */
apr_time_t agent_key_cache_until(const agent_identity_t *identity);

/* Creates an empty cache of at most size keys, in pool. */
apr_status_t agent_key_cache_create(agent_key_cache_t **out, int size,
                                    apr_pool_t *pool);

/*
 * Finds the owner of a key that is not too old: *out is then a copy, its user
 * in pool. text: the whole key, which is not kept itself. now: of the monotonic
 * clock.
 */
bool agent_key_cache_find(agent_identity_t *out, agent_key_cache_t *cache,
                          const char *text, apr_time_t now, apr_pool_t *pool);

/* Caches a key until the time `until`; replaces its earlier entry. */
void agent_key_cache_add(agent_key_cache_t *cache, const char *text,
                         const agent_identity_t *identity, apr_time_t until);

#endif
