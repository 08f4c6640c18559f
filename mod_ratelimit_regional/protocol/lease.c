/* SPDX-License-Identifier: Apache-2.0 */
/* Uses, requests and records the leases of a key. Takes the time as an argument
 * and never blocks. */
#include "lease.h"

#include <string.h>

#include "period.h"

/* How long a refusal is cached at most: under a limit with leases, whose unused
 * admissions other hosts may return; and under any other, since an operator may
 * reset the key. */
#define LEASE_REFUSAL_MS 100U
#define REFUSAL_MS       1000U

void rlr_lease_init(rlr_lease_t *lease, const unsigned char *key,
                    rlr_limit_t limit)
{
    memset(lease, 0, sizeof(*lease));
    memcpy(lease->key, key, sizeof(lease->key));
    lease->limit = limit;
}

void rlr_lease_change(rlr_lease_t *lease, rlr_limit_t limit)
{
    lease->limit = limit;
    lease->size = 0;
    lease->unused = 0;
    lease->cached_until_ms = 0;
}

/* How long a lease is used; 0: the store decides each request of the limit. */
static uint32_t get_lease_ms(rlr_limit_t limit)
{
    return limit.count <= RLR_WINDOW_MARKS
        ? 0
        : rlr_period_lease(limit.interval_sec);
}

uint64_t rlr_lease_wait(const rlr_lease_t *lease, uint64_t now_ms)
{
    return lease->refused_until_ms > now_ms ? lease->refused_until_ms - now_ms
                                            : 1;
}

rlr_lease_result_t rlr_lease_take(rlr_lease_t *lease, uint64_t now_ms,
                                  uint64_t *wait_ms)
{
    if (lease->unused > 0 && now_ms < lease->until_ms) {
        lease->unused--;
        return RLR_LEASE_ADMITTED;
    }
    if (now_ms < lease->cached_until_ms) {
        *wait_ms = rlr_lease_wait(lease, now_ms);
        return RLR_LEASE_REFUSED;
    }
    return RLR_LEASE_ASK;
}

bool rlr_lease_is_due(const rlr_lease_t *lease, uint64_t now_ms)
{
    uint64_t half_ms = (lease->until_ms - lease->from_ms) / 2;

    /* A lease of which hardly anything was used is left to expire. */
    return lease->size > 0 && now_ms < lease->until_ms
        && now_ms >= lease->cached_until_ms
        && (lease->unused <= lease->size / 2
            || (now_ms >= lease->from_ms + half_ms
                && lease->unused < lease->size));
}

/* The requests to expect during the next lease, estimated from those since the
 * beginning of this one. */
static uint32_t estimate_wanted(const rlr_lease_t *lease, uint32_t waiting,
                                uint64_t now_ms)
{
    uint64_t lease_ms = get_lease_ms(lease->limit);
    uint64_t used = lease->size - lease->unused + lease->waited + waiting;
    uint64_t past_ms = now_ms > lease->from_ms ? now_ms - lease->from_ms : 1;
    uint64_t most = lease->limit.count / (RLR_WINDOW_MARKS / 2);
    uint64_t expected;

    if (lease_ms == 0) {
        return waiting;
    }
    past_ms = past_ms < 4 ? 4 : past_ms;
    expected = past_ms > 2 * lease_ms ? 0 : 2 * used * lease_ms / past_ms;
    expected = expected < most ? expected : most;
    return waiting + (uint32_t)expected;
}

void rlr_lease_request(rlr_message_item_t *item, const rlr_lease_t *lease,
                       uint32_t waiting, uint64_t tag, uint64_t now_ms)
{
    memcpy(item->key, lease->key, sizeof(item->key));
    item->limit = lease->limit;
    item->wanted = estimate_wanted(lease, waiting, now_ms);
    item->waiting = waiting;
    item->tag = tag;
    item->closed_tag = lease->closed_tag;
    item->closed_used = lease->closed_used;
}

/* Joins the two oldest marks; the later time counts. */
static void join_marks(rlr_lease_t *lease)
{
    lease->marks[1].amount += lease->marks[0].amount;
    memmove(&lease->marks[0], &lease->marks[1],
            (RLR_LEASE_MARKS - 1) * sizeof(lease->marks[0]));
    memset(&lease->marks[RLR_LEASE_MARKS - 1], 0, sizeof(lease->marks[0]));
}

static void drop_marks(rlr_lease_t *lease, uint64_t now_ms)
{
    while (lease->marks[0].amount > 0 && lease->marks[0].expires_ms <= now_ms) {
        lease->marks[0].amount = 0;
        join_marks(lease);
    }
}

static void add_mark(rlr_lease_t *lease, uint64_t expires_ms, uint32_t amount)
{
    uint32_t i = 0;

    if (lease->marks[RLR_LEASE_MARKS - 1].amount > 0) {
        join_marks(lease);
    }
    while (lease->marks[i].amount > 0) {
        i++;
    }
    /* Replies may arrive out of order. */
    if (i > 0 && lease->marks[i - 1].expires_ms > expires_ms) {
        expires_ms = lease->marks[i - 1].expires_ms;
    }
    lease->marks[i].expires_ms = expires_ms;
    lease->marks[i].amount = amount;
}

/* Replaces the lease; the next request returns what the old one did not use. */
static void open_lease(rlr_lease_t *lease, const rlr_message_item_t *item,
                       uint32_t size, uint32_t waited, uint64_t sent_ms)
{
    uint32_t lease_ms = get_lease_ms(lease->limit);

    if (lease->size > 0) {
        lease->closed_tag = lease->tag;
        lease->closed_used = lease->size - lease->unused + lease->waited;
    }
    lease->tag = item->tag;
    lease->size = size;
    lease->unused = size;
    lease->waited = waited;
    lease->from_ms = sent_ms;
    lease->until_ms = sent_ms + lease_ms
        - (lease_ms > 0 ? rlr_period_drift(lease_ms) : 0);
}

static void cache_refusal(rlr_lease_t *lease, const rlr_message_grant_t *grant,
                          uint64_t received_ms)
{
    uint32_t most_ms = get_lease_ms(lease->limit) > 0 || grant->wait_ms <= 0
        ? LEASE_REFUSAL_MS
        : REFUSAL_MS;
    uint64_t wait_ms = grant->wait_ms > 0 ? (uint64_t)grant->wait_ms : most_ms;

    lease->refused_until_ms = received_ms + wait_ms;
    lease->cached_until_ms = received_ms
        + (wait_ms < most_ms ? wait_ms : most_ms);
}

uint32_t rlr_lease_grant(rlr_lease_t *lease, const rlr_message_item_t *item,
                         const rlr_message_grant_t *grant, uint64_t sent_ms,
                         uint64_t received_ms)
{
    uint32_t lease_ms = get_lease_ms(lease->limit);
    uint64_t counted_ms = lease_ms + (uint64_t)lease->limit.interval_sec * 1000;
    uint32_t admitted = grant->granted < item->waiting ? grant->granted
                                                       : item->waiting;

    if (item->closed_tag == lease->closed_tag) {
        lease->closed_tag = 0;
    }
    if (grant->granted > 0) {
        drop_marks(lease, received_ms);
        add_mark(lease,
                 received_ms + counted_ms + 1 + rlr_period_drift(counted_ms),
                 grant->granted);
        open_lease(lease, item, grant->granted - admitted, admitted, sent_ms);
    }
    lease->remaining = grant->remaining;
    lease->reset_at_ms = received_ms + grant->reset_ms;
    /* A call whose waiting requests had timed out wanted nothing. */
    if (admitted < item->waiting || (item->wanted > 0 && grant->granted == 0)) {
        cache_refusal(lease, grant, received_ms);
    }
    return admitted;
}

uint64_t rlr_lease_live_until(const rlr_lease_t *lease, uint64_t now_ms)
{
    uint64_t until_ms = 0;

    for (uint32_t i = 0; i < RLR_LEASE_MARKS; i++) {
        if (lease->marks[i].amount > 0
            && lease->marks[i].expires_ms > until_ms) {
            until_ms = lease->marks[i].expires_ms;
        }
    }
    return until_ms > now_ms ? until_ms : 0;
}

uint32_t rlr_lease_report(rlr_message_mark_t *out, const rlr_lease_t *lease,
                          uint64_t now_ms)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < RLR_LEASE_MARKS; i++) {
        if (lease->marks[i].amount > 0 && lease->marks[i].expires_ms > now_ms) {
            memcpy(out[count].key, lease->key, sizeof(out[count].key));
            out[count].amount = lease->marks[i].amount;
            out[count].expires_in_ms = lease->marks[i].expires_ms - now_ms;
            count++;
        }
    }
    return count;
}

static void fill_closing(rlr_message_item_t *item, const rlr_lease_t *lease,
                         uint64_t tag, uint32_t used)
{
    memset(item, 0, sizeof(*item));
    memcpy(item->key, lease->key, sizeof(item->key));
    item->limit = lease->limit;
    item->closed_tag = tag;
    item->closed_used = used;
}

uint32_t rlr_lease_close(rlr_message_item_t *out, rlr_lease_t *lease,
                         uint64_t now_ms)
{
    uint32_t count = 0;

    /* All marks of the host have expired, and those at the store earlier. */
    if (rlr_lease_live_until(lease, now_ms) == 0) {
        lease->unused = 0;
        return 0;
    }
    if (lease->closed_tag != 0) {
        fill_closing(&out[count++], lease, lease->closed_tag,
                     lease->closed_used);
        lease->closed_tag = 0;
    }
    if (lease->unused > 0) {
        fill_closing(&out[count++], lease, lease->tag,
                     lease->size - lease->unused + lease->waited);
        lease->unused = 0;
    }
    return count;
}

void rlr_lease_recover(rlr_lease_t *lease, uint64_t counted_until_ms)
{
    rlr_lease_reset(lease);
    lease->marks[0].expires_ms = counted_until_ms;
    lease->marks[0].amount = lease->limit.count;
}

void rlr_lease_reset(rlr_lease_t *lease)
{
    rlr_limit_t limit = lease->limit;
    unsigned char key[RLR_MESSAGE_KEY_BYTES];

    memcpy(key, lease->key, sizeof(key));
    rlr_lease_init(lease, key, limit);
}
