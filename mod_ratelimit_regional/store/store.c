/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by a lease, or asks the store. */
#include "store.h"

#include <string.h>

#include <apr_strings.h>

#include "../counter/clock.h"
#include "../protocol/lease_table.h"
#include "../protocol/period.h"
#include "../rules/sha256.h"

/* The wait of a refusal whose end is not known. */
#define RETRY_MS 1000U

void rlr_store_init(rlr_store_t *store, const rlr_store_config_t *config,
                    const rlr_shared_t *shared, const rlr_store_host_t *host)
{
    memset(store, 0, sizeof(*store));
    store->config = config;
    store->shared = *shared;
    store->host = *host;
    memcpy(store->member.id, rlr_shared_id(shared), sizeof(store->member.id));
    store->member.members = config->hosts;
    apr_cpystrn(store->member.name, host->name, sizeof(store->member.name));
    store->member.share_ms = config->failure == RLR_FAILURE_LOCAL
        ? config->share_ms
        : 0;
}

void rlr_store_use_store(rlr_store_t *store, apr_pool_t *ptemp)
{
    const char *text = apr_psprintf(ptemp, "%s %u %" APR_UINT64_T_FMT,
                                    store->config->connection.address.text,
                                    store->member.members,
                                    store->member.share_ms);
    rlr_digest_t digest = rlr_sha256_digest(text, strlen(text));
    uint64_t hash;

    memcpy(&hash, digest.bytes, sizeof(hash));
    rlr_shared_use_store(&store->shared, hash);
}

void rlr_store_key(unsigned char key[RLR_MESSAGE_KEY_BYTES], const char *row,
                   const void *identity, size_t length)
{
    char text[RLR_STORE_ROW_MAX + 1 + RLR_STORE_IDENTITY_MAX];
    size_t row_length = strlen(row) + 1;
    rlr_digest_t digest;

    memcpy(text, row, row_length);
    memcpy(text + row_length, identity, length);
    digest = rlr_sha256_digest(text, row_length + length);
    memcpy(key, digest.bytes, RLR_MESSAGE_KEY_BYTES);
}

/* ---- Decisions ---- */

/* Fills in the decision from the lease, which is locked. */
static void fill_decision(rlr_window_decision_t *decision,
                          const rlr_lease_t *lease, bool is_admitted,
                          const rlr_time_t *now)
{
    uint64_t now_ms = now->ceil_ms;
    uint64_t reset_ms = lease->reset_at_ms > now_ms
        ? lease->reset_at_ms - now_ms
        : (uint64_t)lease->limit.interval_sec * 1000;

    decision->admitted = is_admitted;
    decision->remaining = is_admitted ? lease->unused + lease->remaining : 0;
    if (decision->remaining >= lease->limit.count) {
        decision->remaining = lease->limit.count - 1;
    }
    decision->wait_ms = is_admitted ? 0
                                    : (uint32_t)rlr_lease_wait(lease, now_ms);
    decision->reset_ms = is_admitted ? (uint32_t)reset_ms : decision->wait_ms;
    decision->at_ms = now->floor_ms;
}

static bool is_first_refusal(rlr_lease_t *lease, uint64_t now_ms)
{
    if (now_ms < lease->logged_until_ms) {
        return false;
    }
    lease->logged_until_ms = now_ms
        + (uint64_t)lease->limit.interval_sec * 1000;
    return true;
}

/* Decides by the lease; *refill: more should be requested. */
static rlr_lease_result_t try_lease(const rlr_store_t *store,
                                    const unsigned char *key, rlr_limit_t limit,
                                    rlr_window_decision_t *decision,
                                    bool *first, bool *refill)
{
    rlr_time_t now = rlr_clock_now();
    rlr_lease_t *lease = rlr_lease_table_lock(&store->shared, key, limit,
                                              now.ceil_ms);
    rlr_lease_result_t result;
    uint64_t wait_ms;

    *refill = false;
    if (lease == NULL) {
        return RLR_LEASE_ASK;
    }
    /* Read with the lock: an admission is not later than its lease. */
    now = rlr_clock_now();
    result = rlr_lease_take(lease, now.ceil_ms, &wait_ms);
    if (result != RLR_LEASE_ASK) {
        fill_decision(decision, lease, result == RLR_LEASE_ADMITTED, &now);
        *first = result == RLR_LEASE_REFUSED
            && is_first_refusal(lease, now.ceil_ms);
        *refill = rlr_lease_is_due(lease, now.ceil_ms)
            && rlr_lease_table_may_request(lease, now.ceil_ms);
    }
    rlr_lease_table_unlock(&store->shared, lease);
    return result;
}

/* Fills in a decision of the store, from the lease if there is one. */
static void complete_decision(const rlr_store_t *store,
                              const unsigned char *key, rlr_limit_t limit,
                              bool is_admitted, rlr_window_decision_t *decision,
                              bool *first)
{
    rlr_time_t now = rlr_clock_now();
    rlr_lease_t *lease = rlr_lease_table_lock(&store->shared, key, limit,
                                              now.ceil_ms);
    rlr_lease_t none;

    if (lease == NULL) {
        rlr_lease_init(&none, key, limit);
        fill_decision(decision, &none, is_admitted, &now);
        *first = false;
        return;
    }
    fill_decision(decision, lease, is_admitted, &now);
    *first = !is_admitted && is_first_refusal(lease, now.ceil_ms);
    rlr_lease_table_unlock(&store->shared, lease);
}

bool rlr_store_is_away(const rlr_store_t *store, const unsigned char *key)
{
    return store->queue == NULL || rlr_queue_is_away(store->queue, key);
}

rlr_stats_outcome_t rlr_store_admit(const rlr_store_t *store,
                                    const unsigned char *key, rlr_limit_t limit,
                                    uint32_t client,
                                    rlr_window_decision_t *decision,
                                    bool *first)
{
    rlr_queue_result_t result = RLR_QUEUE_UNDECIDED;
    bool refill;

    if (try_lease(store, key, limit, decision, first, &refill)
        != RLR_LEASE_ASK) {
        if (refill && store->queue != NULL) {
            rlr_queue_refill(store->queue, key, limit);
        }
        return decision->admitted ? RLR_STATS_LEASED : RLR_STATS_CACHED;
    }
    if (store->queue != NULL) {
        result = rlr_queue_request(store->queue, key, limit, client);
    }
    switch (result) {
    case RLR_QUEUE_ADMITTED:
    case RLR_QUEUE_REFUSED:
        complete_decision(store, key, limit, result == RLR_QUEUE_ADMITTED,
                          decision, first);
        return RLR_STATS_ASKED;
    case RLR_QUEUE_LATE:
        return RLR_STATS_LATE;
    case RLR_QUEUE_BUSY:
        return RLR_STATS_BUSY;
    default:
        return RLR_STATS_AWAY;
    }
}

/* ---- Queries ---- */

/* How long nothing is granted under the limit after a start. */
static uint64_t get_start_wait(int64_t started_ms, uint64_t reserved_ms,
                               uint32_t interval_sec)
{
    int64_t wait_ms = (int64_t)rlr_period_lease(interval_sec)
        + (int64_t)interval_sec * 1000 - started_ms;

    if (started_ms == 0) {
        return reserved_ms + rlr_period_settle(interval_sec);
    }
    return started_ms > 0 && wait_ms > 0 ? (uint64_t)wait_ms : 0;
}

bool rlr_store_is_starting(const rlr_store_t *store,
                           const rlr_shared_summary_t *summary,
                           uint64_t *left_ms)
{
    *left_ms = get_start_wait(summary->started_ms, summary->group.reserved_ms,
                              store->host.longest_sec);
    return *left_ms > 0;
}

/* Whether the store answers for the key's partition; *wait_ms: how long it
 * grants nothing under the limit. */
static bool is_connected(const rlr_store_t *store, const unsigned char *key,
                         rlr_limit_t limit, uint64_t *wait_ms)
{
    uint32_t partition = rlr_shared_partition_of(key);
    uint64_t now_ms = rlr_clock_now().floor_ms;
    const rlr_partition_state_t *state = rlr_shared_lock(&store->shared,
                                                         partition, now_ms);
    bool connected;

    *wait_ms = 0;
    if (state == NULL) {
        return false;
    }
    connected = state->member.is_confirmed
        && now_ms < state->member.heartbeat_until_ms;
    if (connected) {
        *wait_ms = get_start_wait(state->group.started_ms,
                                  state->group.reserved_ms, limit.interval_sec);
    }
    rlr_shared_unlock(&store->shared, partition);
    return connected;
}

/* Decides by the lease, as the next request would be; false: the store
 * decides. */
static bool peek_lease(const rlr_lease_t *lease, bool is_connected,
                       const rlr_time_t *now, rlr_window_decision_t *decision)
{
    uint64_t refused_until_ms = is_connected ? lease->refused_until_ms
                                             : lease->cached_until_ms;

    if (lease->unused > 0 && now->ceil_ms < lease->until_ms) {
        fill_decision(decision, lease, true, now);
        return true;
    }
    if (now->ceil_ms < refused_until_ms) {
        fill_decision(decision, lease, false, now);
        return true;
    }
    if (is_connected && lease->reset_at_ms > now->ceil_ms) {
        fill_decision(decision, lease, true, now);
        return true;
    }
    return false;
}

bool rlr_store_peek(const rlr_store_t *store, const unsigned char *key,
                    rlr_limit_t limit, rlr_window_decision_t *decision)
{
    rlr_time_t now = rlr_clock_now();
    uint64_t wait_ms;
    bool connected = is_connected(store, key, limit, &wait_ms);
    rlr_lease_t *lease = rlr_lease_table_lock(&store->shared, key, limit,
                                              now.ceil_ms);
    bool is_known = false;

    memset(decision, 0, sizeof(*decision));
    if (lease != NULL) {
        is_known = peek_lease(lease, connected, &now, decision);
        rlr_lease_table_unlock(&store->shared, lease);
    }
    if (is_known || !connected) {
        return is_known;
    }
    decision->admitted = wait_ms == 0;
    decision->remaining = wait_ms == 0 ? limit.count : 0;
    decision->wait_ms = (uint32_t)wait_ms;
    decision->reset_ms = (uint32_t)wait_ms;
    decision->at_ms = now.floor_ms;
    return true;
}

/* ---- The share ---- */

static bool may_have_share(const rlr_store_t *store)
{
    /* A child of a former M or S counts by these. */
    return rlr_shared_has_table(&store->shared)
        && rlr_shared_has_store(&store->shared);
}

/* Takes the lock of the key's partition; *share: what the host may admit, or
 * count 0 and *wait_ms. NULL: the lock is not free. */
static rlr_partition_state_t *lock_share(rlr_limit_t *share, uint32_t *wait_ms,
                                         const rlr_store_t *store,
                                         const unsigned char *key,
                                         rlr_limit_t limit)
{
    uint64_t now_ms = rlr_clock_now().floor_ms;
    rlr_partition_state_t *state = rlr_shared_lock(
        &store->shared, rlr_shared_partition_of(key), now_ms);
    uint64_t left_ms;

    *share = (rlr_limit_t){0, rlr_period_share_sec(limit.interval_sec)};
    *wait_ms = RETRY_MS;
    if (state == NULL) {
        return NULL;
    }
    if (!may_have_share(store)) {
        return state;
    }
    /* Not before the lock was taken. */
    share->count = rlr_member_usable_share(&state->member, &store->member, key,
                                           limit, rlr_clock_now().floor_ms);
    if (share->count == 0) {
        left_ms = rlr_member_share_wait(&state->member, &store->member, key,
                                        limit, now_ms);
        *wait_ms = left_ms > 0 ? (uint32_t)left_ms : RETRY_MS;
    }
    return state;
}

rlr_limit_t rlr_store_begin_share(const rlr_store_t *store,
                                  const unsigned char *key, rlr_limit_t limit,
                                  uint32_t *wait_ms)
{
    rlr_limit_t share;
    rlr_partition_state_t *state = lock_share(&share, wait_ms, store, key,
                                              limit);

    if (share.count > 0) {
        /* Before the admission: this process may die after it. */
        rlr_member_use_share(&state->member, limit.interval_sec,
                             rlr_clock_now().ceil_ms);
    }
    else if (state != NULL) {
        rlr_store_end_share(store, key);
    }
    return share;
}

bool rlr_store_keep_share(const rlr_store_t *store, const unsigned char *key,
                          rlr_limit_t limit)
{
    rlr_partition_state_t *state = rlr_shared_get_locked(
        &store->shared, rlr_shared_partition_of(key));
    rlr_time_t now = rlr_clock_now();

    if (!may_have_share(store)
        || rlr_member_usable_share(&state->member, &store->member, key, limit,
                                   now.floor_ms)
            == 0) {
        return false;
    }
    rlr_member_use_share(&state->member, limit.interval_sec, now.ceil_ms);
    return true;
}

rlr_limit_t rlr_store_peek_share(const rlr_store_t *store,
                                 const unsigned char *key, rlr_limit_t limit,
                                 uint32_t *wait_ms)
{
    rlr_limit_t share;

    if (lock_share(&share, wait_ms, store, key, limit) != NULL) {
        rlr_store_end_share(store, key);
    }
    return share;
}

void rlr_store_end_share(const rlr_store_t *store, const unsigned char *key)
{
    rlr_shared_unlock(&store->shared, rlr_shared_partition_of(key));
}

bool rlr_store_reset(const rlr_store_t *store, const unsigned char *key,
                     rlr_limit_t limit)
{
    uint64_t now_ms = rlr_clock_now().ceil_ms;
    rlr_lease_t *lease;
    bool is_removed = store->queue != NULL
        && rlr_queue_reset(store->queue, key);

    lease = rlr_lease_table_lock(&store->shared, key, limit, now_ms);
    if (lease != NULL) {
        rlr_lease_reset(lease);
        rlr_lease_table_unlock(&store->shared, lease);
    }
    return is_removed;
}
