/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the store; without it decides as RateLimitStoreFailure says. */
#include "decide_store.h"

#include <stdatomic.h>
#include <string.h>

#include "../group/period.h"

static void refuse(rlr_table_decision_t *decision, uint32_t wait_ms)
{
    decision->window = (rlr_window_decision_t){
        .admitted = false, .wait_ms = wait_ms, .reset_ms = wait_ms};
}

static void count_alone(const rlr_group_t *store,
                        const rlr_table_decision_t *decision)
{
    rlr_ledger_counters_t *counters = rlr_ledger_counters(&store->ledger);

    atomic_fetch_add(decision->window.admitted ? &counters->alone_admitted
                                               : &counters->alone_refused,
                     1);
}

/* By this host alone: its whole table, its share, or nothing. */
static void decide_alone(const rlr_vhost_t *vhost, const unsigned char *key,
                         const rlr_table_request_t *request,
                         rlr_table_decision_t *decision)
{
    const rlr_group_t *store = vhost->store;
    rlr_table_request_t local = *request;
    uint32_t wait_ms;

    if (store->config->failure == RLR_FAILURE_OPEN) {
        rlr_table_admit(vhost->table, request, &rlr_clock_monotonic, decision);
        count_alone(store, decision);
        return;
    }
    local.limit.count = rlr_group_begin_share(store, key, request->limit,
                                              &wait_ms);
    if (local.limit.count == 0) {
        refuse(decision, wait_ms);
        count_alone(store, decision);
        rlr_table_count(vhost->table, request, decision);
        return;
    }
    local.limit.interval_sec = rlr_period_local_sec(
        request->limit.interval_sec);
    rlr_table_admit(vhost->table, &local, &rlr_clock_monotonic, decision);
    rlr_group_end_share(store, key);
    count_alone(store, decision);
}

void rlr_decide_store_admit(const rlr_vhost_t *vhost, const char *row,
                            const rlr_table_request_t *request,
                            rlr_table_decision_t *decision)
{
    unsigned char key[RLR_STORE_KEY_BYTES];

    memset(decision, 0, sizeof(*decision));
    rlr_group_key(key, row, request->identity, request->identity_length);
    if (rlr_group_admit(vhost->store, key, request->limit, &decision->window,
                        &decision->first_refusal)
        == RLR_GROUP_DECIDED) {
        rlr_table_count(vhost->table, request, decision);
        return;
    }
    decide_alone(vhost, key, request, decision);
}

void rlr_decide_store_peek(const rlr_vhost_t *vhost, const char *row,
                           const rlr_table_request_t *request,
                           rlr_table_decision_t *decision)
{
    unsigned char key[RLR_STORE_KEY_BYTES];

    memset(decision, 0, sizeof(*decision));
    rlr_group_key(key, row, request->identity, request->identity_length);
    rlr_group_peek(vhost->store, key, request->limit, &decision->window);
}

bool rlr_decide_store_reset(const rlr_vhost_t *vhost, const char *row,
                            const rlr_table_request_t *request)
{
    unsigned char key[RLR_STORE_KEY_BYTES];
    bool had_slot = rlr_table_reset(vhost->table, request,
                                    &rlr_clock_monotonic);

    if (vhost->store == NULL) {
        return had_slot;
    }
    rlr_group_key(key, row, request->identity, request->identity_length);
    return rlr_group_reset(vhost->store, key, request->limit);
}
