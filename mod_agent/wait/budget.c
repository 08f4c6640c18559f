/* SPDX-License-Identifier: Apache-2.0 */
/* A memory budget of a child for slow clients. */
#include "budget.h"

#include <apr_hash.h>
#include <apr_ring.h>
#include <apr_strings.h>
#include <apr_time.h>

#include "../core/allocator.h"
#include "../core/lock.h"

/* The shares of one deployment, or of none. */
typedef struct owner_t {
    apr_size_t bytes;
} owner_t;

struct agent_budget_share_t {
    /* In budget->waiting, unless it is evicted. */
    APR_RING_ENTRY(agent_budget_share_t) link;
    agent_budget_t *budget;
    /* Accessed by the share's owner, and under the lock. */
    owner_t *owner;
    agent_budget_eviction_t eviction;
    /* While in use, accessed by the owner only, without lock. */
    apr_size_t bytes;
    apr_time_t progress_at;
    /* Borrowed while the share waits; NULL = descriptors ran out. */
    const agent_client_socket_t *client;
    bool waits;
    bool is_evicted;
    /* When it was last evicted. */
    apr_size_t lost_bytes;
    apr_interval_time_t lost_idle;
};

APR_RING_HEAD(share_ring_t, agent_budget_share_t);

struct agent_budget_t {
    agent_lock_t *lock;
    apr_size_t most;
    /* Under the lock: */
    apr_size_t bytes;
    struct share_ring_t waiting;
    owner_t none;
    /* deployment -> owner_t, once the deployment has had a share */
    apr_hash_t *owners;
};

apr_status_t agent_budget_create(agent_budget_t **out, apr_size_t bytes,
                                 apr_pool_t *pool)
{
    agent_budget_t *budget = apr_pcalloc(pool, sizeof(*budget));

    budget->most = bytes;
    budget->owners = apr_hash_make(agent_allocator_make_private(pool));
    APR_RING_INIT(&budget->waiting, agent_budget_share_t, link);
    *out = budget;
    return agent_lock_create(&budget->lock, pool);
}

apr_size_t agent_budget_room(agent_budget_t *budget)
{
    apr_size_t bytes;

    agent_lock_take(budget->lock);
    bytes = budget->bytes;
    agent_lock_release(budget->lock);
    return bytes < budget->most ? budget->most - bytes : 0;
}

/* 0 if the clock was set back. */
static apr_interval_time_t find_idle(const agent_budget_share_t *share,
                                     apr_time_t now)
{
    return now > share->progress_at ? now - share->progress_at : 0;
}

/* At least the size. */
static double weigh(const agent_budget_share_t *share, apr_time_t now)
{
    return (double)share->bytes * (double)(find_idle(share, now) + 1);
}

/* Bytes that a deployment may hold without loss. */
static apr_size_t guarantee_locked(const agent_budget_t *budget)
{
    unsigned int deployments = apr_hash_count(budget->owners);

    return deployments > 1 ? budget->most / 2 / deployments : 0;
}

static bool is_heavier(const agent_budget_share_t *a,
                       const agent_budget_share_t *b, apr_time_t now)
{
    return a->owner->bytes != b->owner->bytes
        ? a->owner->bytes > b->owner->bytes
        : weigh(a, now) > weigh(b, now);
}

/* NULL = none that may be evicted waits. */
static agent_budget_share_t *find_heaviest_locked(agent_budget_t *budget,
                                                  apr_time_t now)
{
    apr_size_t guarantee = guarantee_locked(budget);
    agent_budget_share_t *heaviest = NULL;
    agent_budget_share_t *share;

    APR_RING_FOREACH(share, &budget->waiting, agent_budget_share_t, link)
    {
        if (share->owner->bytes > guarantee
            && (heaviest == NULL || is_heavier(share, heaviest, now))) {
            heaviest = share;
        }
    }
    return heaviest;
}

static void evict_locked(agent_budget_share_t *share, apr_time_t now)
{
    APR_RING_REMOVE(share, link);
    share->lost_bytes = share->bytes;
    share->lost_idle = find_idle(share, now);
    share->eviction.drop(share->eviction.baton);
    share->budget->bytes -= share->bytes;
    share->owner->bytes -= share->bytes;
    share->bytes = 0;
    share->is_evicted = true;
    if (share->client != NULL) {
        agent_client_socket_shut_down(share->client, share->eviction.shutdown);
    }
}

static void make_room_locked(agent_budget_t *budget, apr_time_t now)
{
    while (budget->bytes > budget->most) {
        agent_budget_share_t *heaviest = find_heaviest_locked(budget, now);

        if (heaviest == NULL) {
            return;
        }
        evict_locked(heaviest, now);
    }
}

void agent_budget_share_progress(agent_budget_share_t *share, apr_time_t now)
{
    share->progress_at = now;
}

void agent_budget_share_set(agent_budget_share_t *share, apr_size_t bytes,
                            apr_time_t now)
{
    agent_budget_t *budget = share->budget;

    if (bytes == share->bytes) {
        return;
    }
    if (share->bytes == 0 || bytes < share->bytes) {
        agent_budget_share_progress(share, now);
    }
    agent_lock_take(budget->lock);
    budget->bytes += bytes;
    budget->bytes -= share->bytes;
    share->owner->bytes += bytes;
    share->owner->bytes -= share->bytes;
    if (bytes > share->bytes) {
        make_room_locked(budget, now);
    }
    agent_lock_release(budget->lock);
    share->bytes = bytes;
}

void agent_budget_share_wait(agent_budget_share_t *share,
                             const agent_client_socket_t *client,
                             apr_time_t now)
{
    agent_budget_t *budget = share->budget;

    if (share->bytes == 0) {
        return;
    }
    share->client = client;
    share->waits = true;
    agent_lock_take(budget->lock);
    APR_RING_INSERT_TAIL(&budget->waiting, share, agent_budget_share_t, link);
    make_room_locked(budget, now);
    agent_lock_release(budget->lock);
}

bool agent_budget_share_resume(agent_budget_share_t *share)
{
    bool was_evicted;

    if (!share->waits) {
        return true;
    }
    share->waits = false;
    agent_lock_take(share->budget->lock);
    was_evicted = share->is_evicted;
    if (!was_evicted) {
        APR_RING_REMOVE(share, link);
    }
    agent_lock_release(share->budget->lock);
    share->is_evicted = false;
    return !was_evicted;
}

apr_size_t agent_budget_share_lost(const agent_budget_share_t *share,
                                   apr_interval_time_t *idle)
{
    *idle = share->lost_idle;
    return share->lost_bytes;
}

static owner_t *find_owner_locked(agent_budget_t *budget,
                                  const char *deployment)
{
    owner_t *owner;

    if (deployment == NULL) {
        return &budget->none;
    }
    owner = apr_hash_get(budget->owners, deployment, APR_HASH_KEY_STRING);
    if (owner == NULL) {
        apr_pool_t *pool = apr_hash_pool_get(budget->owners);

        owner = apr_pcalloc(pool, sizeof(*owner));
        apr_hash_set(budget->owners, apr_pstrdup(pool, deployment),
                     APR_HASH_KEY_STRING, owner);
    }
    return owner;
}

void agent_budget_share_set_owner(agent_budget_share_t *share,
                                  const char *deployment)
{
    agent_budget_t *budget = share->budget;

    agent_lock_take(budget->lock);
    share->owner->bytes -= share->bytes;
    share->owner = find_owner_locked(budget, deployment);
    share->owner->bytes += share->bytes;
    agent_lock_release(budget->lock);
}

static apr_status_t remove_with_pool(void *share)
{
    agent_budget_share_resume(share);
    agent_budget_share_set(share, 0, 0);
    return APR_SUCCESS;
}

agent_budget_share_t *agent_budget_share_add(
    agent_budget_t *budget, const agent_budget_eviction_t *eviction,
    apr_pool_t *pool)
{
    agent_budget_share_t *share = apr_pcalloc(pool, sizeof(*share));

    share->budget = budget;
    share->owner = &budget->none;
    share->eviction = *eviction;
    /* Before the memory of the share is freed with the pool. */
    apr_pool_pre_cleanup_register(pool, share, remove_with_pool);
    return share;
}
