/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the store; without it decides as RateLimitStoreFailure says. */
#include "decide_store.h"

#include <string.h>

#include "../counter/siphash.h"
#include "subject.h"

_Static_assert(RLR_IDENTITY_MAX <= RLR_STORE_IDENTITY_MAX,
               "an identity fits into the text of a key");
/* REGION/RULE/KEY. */
_Static_assert(2 * RLR_NAME_MAX + 32 <= RLR_STORE_ROW_MAX,
               "a row's name fits into the text of a key");

/* When to ask again after a process was stopped while it decided. */
#define STOPPED_MS 1000U

static void refuse(rlr_table_decision_t *decision, uint32_t wait_ms)
{
    decision->window = (rlr_window_decision_t){
        .admitted = false, .wait_ms = wait_ms, .reset_ms = wait_ms};
}

/* By the host's share, or nothing. A counter of several keys would give a key
 * the share once from each address. */
static void decide_by_share(const rlr_vhost_t *vhost, const unsigned char *key,
                            const rlr_table_request_t *request,
                            rlr_table_decision_t *decision)
{
    const rlr_store_t *store = vhost->store;
    rlr_table_request_t local = *request;
    uint32_t wait_ms;

    local.limit = rlr_store_begin_share(store, key, request->limit, &wait_ms);
    if (local.limit.count == 0) {
        refuse(decision, wait_ms);
        rlr_table_count(vhost->table, request, decision);
        return;
    }
    local.needs_slot = true;
    rlr_table_admit(vhost->table, &local, &rlr_clock_monotonic, decision);
    if (decision->window.admitted
        && !rlr_store_keep_share(store, key, request->limit)) {
        refuse(decision, STOPPED_MS);
    }
    rlr_store_end_share(store, key);
}

/* The slot of a key that the store is asked for. */
static rlr_table_request_t make_hold(const rlr_vhost_t *vhost,
                                     const unsigned char *key,
                                     const rlr_table_request_t *request)
{
    rlr_table_request_t hold = *request;

    hold.row = vhost->store_row;
    hold.identity = key;
    hold.identity_length = RLR_MESSAGE_KEY_BYTES;
    return hold;
}

/* Whether the store may be asked for the key. All keys that it is asked for
 * have a slot for an interval: an address fills no more of the store than of
 * the table. *is_new: the key had none. */
static bool may_ask(const rlr_vhost_t *vhost, const unsigned char *key,
                    const rlr_table_request_t *hold,
                    rlr_table_decision_t *decision, bool *is_new)
{
    bool may = rlr_store_is_away(vhost->store, key)
        || rlr_table_hold(vhost->table, hold, &rlr_clock_monotonic, decision);

    *is_new = decision->window.admitted;
    return may;
}

/* Keyed: no client can choose addresses with the hash of another one. */
static uint32_t get_client(const rlr_vhost_t *vhost,
                           const rlr_table_request_t *request)
{
    return (uint32_t)rlr_siphash_compute(
               vhost->store->member.id, request->holder, request->holder_length)
        .first;
}

void rlr_decide_store_admit(const rlr_vhost_t *vhost, const char *row,
                            const rlr_table_request_t *request,
                            rlr_table_decision_t *decision)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    rlr_table_request_t hold = make_hold(vhost, key, request);
    rlr_stats_outcome_t outcome;
    bool is_new;

    memset(decision, 0, sizeof(*decision));
    rlr_store_key(key, row, request->identity, request->identity_length);
    if (!may_ask(vhost, key, &hold, decision, &is_new)) {
        rlr_table_count(vhost->table, request, decision);
        return;
    }
    outcome = rlr_store_admit(vhost->store, key, request->limit,
                              get_client(vhost, request), &decision->window,
                              &decision->first_refusal);
    rlr_stats_request(vhost->store_stats, outcome);
    if (outcome == RLR_STATS_BUSY && is_new) {
        /* The store was not asked: it keeps nothing of the key. */
        rlr_table_reset(vhost->table, &hold, &rlr_clock_monotonic);
    }
    if (rlr_stats_is_decided(outcome)) {
        rlr_table_count(vhost->table, request, decision);
        return;
    }
    if (vhost->store->config->failure == RLR_FAILURE_OPEN) {
        rlr_table_admit(vhost->table, request, &rlr_clock_monotonic, decision);
    }
    else {
        decide_by_share(vhost, key, request, decision);
    }
    rlr_stats_request(vhost->store_stats,
                      decision->window.admitted ? RLR_STATS_ALONE_ADMITTED
                                                : RLR_STATS_ALONE_REFUSED);
}

void rlr_decide_store_peek(const rlr_vhost_t *vhost, const char *row,
                           const rlr_table_request_t *request,
                           rlr_table_decision_t *decision)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    rlr_table_request_t local = *request;
    uint32_t wait_ms;

    memset(decision, 0, sizeof(*decision));
    rlr_store_key(key, row, request->identity, request->identity_length);
    if (rlr_store_peek(vhost->store, key, request->limit, &decision->window)) {
        return;
    }
    if (vhost->store->config->failure == RLR_FAILURE_OPEN) {
        rlr_table_peek(vhost->table, request, &rlr_clock_monotonic, decision);
        return;
    }
    local.limit = rlr_store_peek_share(vhost->store, key, request->limit,
                                       &wait_ms);
    if (local.limit.count == 0) {
        refuse(decision, wait_ms);
        return;
    }
    rlr_table_peek(vhost->table, &local, &rlr_clock_monotonic, decision);
}

bool rlr_decide_store_reset(const rlr_vhost_t *vhost, const char *row,
                            const rlr_table_request_t *request)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES];

    rlr_store_key(key, row, request->identity, request->identity_length);
    return rlr_store_reset(vhost->store, key, request->limit);
}
