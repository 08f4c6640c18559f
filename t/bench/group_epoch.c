/* SPDX-License-Identifier: Apache-2.0 */
/* The epoch of a simulated partition: when another one begins. */
#include "group_store_state.h"

#include <stdio.h>
#include <string.h>

#include "../../mod_ratelimit_regional/protocol/period.h"

/* How long a host may bring its number to another store. */
static int64_t get_bring_ms(const group_store_t *store)
{
    return max_of(store->share_ms,
                  RLR_PERIOD_REPLACE_MS - RLR_PERIOD_HEARTBEAT_MS);
}

int64_t group_epoch_held(const group_store_t *store)
{
    int64_t bring_ms = get_bring_ms(store);

    return bring_ms + (int64_t)rlr_period_drift((uint64_t)bring_ms)
        + RLR_PERIOD_HEARTBEAT_MS + RLR_PERIOD_CALL_MS
        + RLR_PERIOD_TWO_STORES_MS;
}

bool group_epoch_has_no_host(const group_store_t *store, const record_t *record)
{
    return record->kind == LEFT || (record->kind == EMPTY && store->follows);
}

bool group_epoch_lacks_host(const group_store_t *store)
{
    for (uint32_t i = 0; i < store->members; i++) {
        if (group_epoch_has_no_host(store, &store->records[i])) {
            return true;
        }
    }
    return false;
}

/* Whether one of the numbers has not ended (R8). */
static bool is_in_use(const group_store_t *store)
{
    int64_t used_ms = group_epoch_held(store);
    bool had_none = store->is_continued && !store->complete && !store->old;

    for (uint32_t i = 0; i < store->members; i++) {
        const record_t *record = &store->records[i];
        bool has_none = group_epoch_has_no_host(store, record)
            || (had_none && record->kind == EMPTY);

        if ((!had_none && store->now < record->base)
            || (!has_none
                && store->now
                    < max_of(record->heartbeat, store->back) + used_ms)) {
            return true;
        }
    }
    return false;
}

/* follows: all hosts with the former configuration have ended. */
static void begin_epoch(group_store_t *store, uint32_t members,
                        int64_t share_ms, bool follows)
{
    static uint32_t number;

    if (!store->is_continued) {
        group_marks_drop(&store->marks);
    }
    memset(store->records, 0, sizeof(store->records));
    store->exists = true;
    store->made_by = store->server;
    snprintf(store->name, sizeof(store->name), "%016x", ++number);
    store->start = store->now;
    store->members = members;
    store->share_ms = share_ms;
    store->complete = follows;
    store->follows = follows;
    store->old = false;
    store->scan = 0;
    store->ready = 0;
    store->known = follows ? store->now : 0;
    store->last = store->now;
    store->back = store->now + RLR_PERIOD_TWO_STORES_MS;
    store->unsettled_count = 0;
    for (uint32_t i = 0; i < MEMBERS_MAX && !follows; i++) {
        store->records[i].heartbeat = store->now;
        store->records[i].base = store->now;
    }
}

/* Whether the epoch knows all admissions that count, of rules with an L + T
 * from continued_from to continued_to, if all hosts are there again in less
 * than that (R10). */
static bool find_continued(group_store_t *store)
{
    int64_t waited = store->last - store->known;
    int64_t base = 0;

    if (!store->complete) {
        return store->is_continued && !store->old
            && store->now < store->start + group_epoch_held(store);
    }
    for (uint32_t i = 0; i < store->members; i++) {
        if (store->records[i].kind != LEFT) {
            return false;
        }
        base = max_of(base, store->records[i].base);
    }
    if (!store->is_continued || waited >= store->continued_from) {
        store->continued_to = max_of(
            waited, store->is_continued ? store->continued_to : 0);
        store->continued_from = 0;
    }
    base = store->last - base - RLR_PERIOD_TIMEOUT_MS - RLR_PERIOD_CALL_MS;
    store->continued_to = base < store->continued_to ? base
                                                     : store->continued_to;
    store->continued_last = store->last;
    return true;
}

/* Whether hosts may have been connected elsewhere since one was connected to
 * this epoch (R10). */
static bool is_abandoned(const group_store_t *store,
                         const rlr_message_call_t *call)
{
    bool is_own = memcmp(call->epoch, store->name, sizeof(call->epoch)) == 0;

    if (store->now < store->last + GROUP_CONFIRM_MS
        || (call->flags & RLR_MESSAGE_LEAVE) != 0) {
        return false;
    }
    return group_epoch_lacks_host(store) || !is_own
        || (call->flags & RLR_MESSAGE_STAYED) == 0
        || store->now >= store->last + get_bring_ms(store);
}

static bool is_executed(const group_store_t *store,
                        const rlr_message_call_t *call)
{
    return call->kind == RLR_MESSAGE_HELLO
        || (store->now <= (int64_t)call->latest_ms
            && memcmp(call->epoch, store->name, sizeof(call->epoch)) == 0);
}

void group_epoch_touch(group_store_t *store)
{
    if (store->now >= store->last + GROUP_CONFIRM_MS) {
        store->back = store->now + RLR_PERIOD_TWO_STORES_MS;
    }
    store->last = store->now;
}

/* Begins another epoch if that of the data has ended; its status if it is one
 * of hosts with another configuration than that of the call. */
rlr_message_status_t group_epoch_take(group_store_t *store,
                                      const rlr_message_call_t *call)
{
    int64_t share_ms = (int64_t)call->share_ms;

    if (!store->exists || store->made_by != store->server) {
        store->is_continued = false;
        begin_epoch(store, call->members, share_ms, false);
    }
    else if (memcmp(call->epoch, store->name, sizeof(call->epoch)) == 0
             && (call->flags & RLR_MESSAGE_CLOCK) != 0) {
        store->is_continued = false;
        begin_epoch(store, store->members, store->share_ms, false);
    }
    if (store->members == call->members && store->share_ms == share_ms) {
        if (is_executed(store, call) && is_abandoned(store, call)) {
            store->is_continued = find_continued(store);
            begin_epoch(store, call->members, share_ms, false);
        }
        return RLR_MESSAGE_OK;
    }
    if (is_in_use(store)) {
        return RLR_MESSAGE_OTHER;
    }
    if (store->now > (int64_t)call->latest_ms
        || (call->flags & RLR_MESSAGE_LEAVE) != 0) {
        return RLR_MESSAGE_LATE;
    }
    store->is_continued = false;
    begin_epoch(store, call->members, share_ms, true);
    return RLR_MESSAGE_OK;
}
