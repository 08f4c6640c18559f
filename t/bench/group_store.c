/* SPDX-License-Identifier: Apache-2.0 */
/* Members and grants. */
#include "group_store.h"

#include "../../mod_ratelimit_regional/protocol/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../mod_ratelimit_regional/protocol/period.h"
#include "group_store_state.h"

#define MARKS_MAX 64
#define NEVER     (1LL << 45)

group_store_t *group_store_make(uint32_t server, int64_t offset_ms)
{
    group_store_t *store = calloc(1, sizeof(*store));

    store->server = server;
    store->offset_ms = offset_ms;
    store->rate = 1;
    return store;
}

void group_store_set_rate(group_store_t *store, double rate)
{
    store->rate = rate;
}

void group_store_empty(group_store_t *store)
{
    group_marks_drop(&store->marks);
    store->exists = false;
}

void group_store_drop(group_store_t *store)
{
    group_marks_drop(&store->marks);
    free(store);
}

void group_store_set_clock(group_store_t *store, int64_t by_ms)
{
    store->offset_ms += by_ms;
}

void group_store_restart(group_store_t *store, uint32_t server)
{
    store->server = server;
}

void group_store_size(const group_store_t *store, uint64_t *keys,
                      uint64_t *marks)
{
    group_marks_size(&store->marks, keys, marks);
}

/* ---- Members ---- */

static int find_number(const group_store_t *store,
                       const rlr_message_call_t *call)
{
    const record_t *records = store->records;
    bool has_number = call->number >= 0 && call->number < (int)store->members;
    int unused = -1;
    int timed_out = -1;
    int left = -1;

    if (has_number && records[call->number].kind != EMPTY
        && memcmp(records[call->number].id, call->id, sizeof(call->id)) == 0) {
        return call->number;
    }
    for (int i = 0; i < (int)store->members; i++) {
        if (records[i].kind == EMPTY) {
            unused = unused < 0 ? i : unused;
        }
        else if (memcmp(records[i].id, call->id, sizeof(call->id)) == 0) {
            return i;
        }
        else if (records[i].kind == LEFT) {
            left = left < 0 ? i : left;
        }
        else if (store->now >= records[i].heartbeat + RLR_PERIOD_REPLACE_MS) {
            timed_out = timed_out < 0 ? i : timed_out;
        }
    }
    if (has_number && (call->flags & RLR_MESSAGE_BRING) != 0) {
        const record_t *record = &records[call->number];

        if (record->kind == EMPTY
            || ((record->kind == MOVED || record->kind == NEW)
                && !store->complete
                && store->now < store->start + RLR_PERIOD_REPLACE_MS)) {
            return call->number;
        }
    }
    if (left >= 0) {
        return left;
    }
    return unused >= 0 ? unused : timed_out;
}

/* The kind of a member whose previous heartbeat was not with this epoch. */
static void set_kind(group_store_t *store, record_t *record,
                     const rlr_message_call_t *call, bool keeps)
{
    record->attested = store->now + call->base_offset_ms;
    record->joined = keeps ? store->now + call->joined_offset_ms : store->now;
    record->kind = keeps ? BROUGHT : MOVED;
    if (keeps && (call->flags & RLR_MESSAGE_ATTEST) != 0) {
        record->kind = ATTESTED;
    }
    else if ((call->flags & RLR_MESSAGE_NEW) != 0) {
        record->kind = NEW;
    }
    store->old = store->old || (call->flags & RLR_MESSAGE_NEW) == 0;
}

/* Until when the host may be connected elsewhere; 0: the number has none. */
static int64_t held_until(const group_store_t *store, const record_t *record)
{
    return record->heartbeat > 0
        ? max_of(record->heartbeat, store->back) + group_epoch_held(store)
        : 0;
}

static void join(group_store_t *store, int number,
                 const rlr_message_call_t *call)
{
    record_t *record = &store->records[number];
    bool had_left = group_epoch_has_no_host(store, record);
    bool keeps = number == call->number && !had_left
        && (call->flags & RLR_MESSAGE_BRING) != 0;

    if (keeps) {
        record->base = max_of(store->now, store->now + call->base_offset_ms);
    }
    else if (!had_left || (call->flags & RLR_MESSAGE_NEW) == 0) {
        record->base = max_of(max_of(record->base, held_until(store, record)),
                              store->now + RLR_PERIOD_TWO_STORES_MS
                                  + RLR_PERIOD_CALL_MS);
    }
    record->heartbeat = store->now;
    memcpy(record->id, call->id, sizeof(record->id));
    set_kind(store, record, call, keeps);
}

/* Whether all members have attested, or are new. */
static bool is_ready(const group_store_t *store)
{
    enum kind kind = store->records[0].kind;

    for (uint32_t i = 0; i < store->members; i++) {
        if (store->records[i].kind != kind) {
            return false;
        }
    }
    return kind == ATTESTED || (kind == NEW && !store->old);
}

/* A duration by the clock of another server is not longer. */
static int64_t drift(int64_t ms)
{
    return ms + (ms + 255) / 256;
}

/* Completes the epoch if no other one can have granted anything since it was
 * ready. */
static bool complete(group_store_t *store)
{
    int64_t from = store->ready + GROUP_CONFIRM_MS;

    for (uint32_t i = 0; i < store->members; i++) {
        if (store->ready == 0 || store->records[i].heartbeat < from) {
            return false;
        }
    }
    for (uint32_t i = 0; i < store->members; i++) {
        record_t *record = &store->records[i];

        if (record->kind == ATTESTED) {
            record->base = record->attested;
            store->known = max_of(store->known, record->joined);
        }
        else {
            record->base = 0;
            record->joined = store->ready;
            store->known = store->ready;
        }
    }
    store->is_continued = store->is_continued
        && store->records[0].kind != ATTESTED;
    store->continued_from = max_of(
        store->continued_from, drift(store->ready - store->continued_last) + 1);
    store->complete = true;
    return true;
}

static bool is_unsettled(const group_store_t *store, const record_t *record,
                         uint32_t interval_sec)
{
    int64_t settle = (int64_t)rlr_period_settle(interval_sec);

    return store->now < record->base + settle
        || (store->now >= record->heartbeat + RLR_PERIOD_TIMEOUT_MS
            && store->now < held_until(store, record) + settle);
}

static void scan(group_store_t *store)
{
    store->unsettled_count = 0;
    store->scan = NEVER;
    for (uint32_t i = 0; i < store->members; i++) {
        const record_t *record = &store->records[i];
        int64_t timed_out = record->heartbeat + RLR_PERIOD_TIMEOUT_MS;

        if (is_unsettled(store, record, RLR_LIMIT_INTERVAL_SEC_MAX)) {
            store->odd_records[store->unsettled_count] = *record;
            store->unsettled[store->unsettled_count++] = i;
        }
        if (store->now < timed_out && timed_out < store->scan) {
            store->scan = timed_out;
        }
    }
}

static void renew(group_store_t *store, int number,
                  const rlr_message_call_t *call)
{
    record_t *record = &store->records[number];
    bool is_other = record->kind == EMPTY
        || memcmp(record->id, call->id, sizeof(call->id)) != 0;
    bool has_used_share = (call->flags & RLR_MESSAGE_USED) != 0
        || (call->flags & RLR_MESSAGE_STAYED) == 0;
    bool had_timed_out = store->now
        >= record->heartbeat + RLR_PERIOD_TIMEOUT_MS;
    bool is_changed = is_other || has_used_share;

    if (is_other) {
        join(store, number, call);
    }
    else if (has_used_share) {
        record->base = max_of(record->base, store->now);
        set_kind(store, record, call,
                 number == call->number
                     && (call->flags & RLR_MESSAGE_BRING) != 0);
    }
    if (is_changed) {
        store->ready = !store->complete && is_ready(store) ? store->now : 0;
    }
    if (is_changed || store->now >= record->heartbeat + 200) {
        record->heartbeat = store->now;
        if ((call->flags & RLR_MESSAGE_LEAVE) == 0
            || store->now < store->last + GROUP_CONFIRM_MS) {
            group_epoch_touch(store);
        }
        is_changed = (!store->complete && complete(store)) || is_changed;
    }
    if (is_changed || had_timed_out || store->now >= store->scan) {
        scan(store);
    }
}

static void leave(group_store_t *store, int number)
{
    store->records[number].heartbeat = 0;
    store->records[number].kind = LEFT;
    store->ready = 0;
    scan(store);
}

/* Whether the call is one of a host that has left, or that leaves
 * and is not a member. */
static bool has_left(const record_t *record, const rlr_message_call_t *call)
{
    bool is_own = record->kind != EMPTY
        && memcmp(record->id, call->id, sizeof(call->id)) == 0;

    return is_own ? record->kind == LEFT
                  : (call->flags & RLR_MESSAGE_LEAVE) != 0;
}

/* ---- Grants ---- */

/* Lists the shares of the key that are reserved; their sum. */
static int64_t reserve(group_part_t *parts, uint32_t *count,
                       const group_store_t *store,
                       const rlr_message_item_t *item)
{
    int64_t settle = (int64_t)rlr_period_settle(item->limit.interval_sec);
    int64_t sum = 0;

    for (uint32_t i = 0; i < store->unsettled_count; i++) {
        const record_t *record = &store->odd_records[i];
        group_part_t part = {.at = record->base + settle};

        if (!is_unsettled(store, record, item->limit.interval_sec)) {
            continue;
        }
        if (store->now >= record->heartbeat + RLR_PERIOD_TIMEOUT_MS) {
            part.at = max_of(part.at, held_until(store, record) + settle);
        }
        part.amount = rlr_member_share((int)store->unsettled[i],
                                       item->limit.count, store->members,
                                       item->key);
        sum += part.amount;
        parts[(*count)++] = part;
    }
    return sum;
}

/* Whether the epoch goes on for rules with that L + T where its hosts left an
 * earlier one (R10). */
static bool is_continued(const group_store_t *store, int64_t period_ms,
                         int64_t from)
{
    return store->is_continued && period_ms >= store->continued_from
        && period_ms <= store->continued_to
        && period_ms > drift(from - store->continued_last);
}

static int64_t wait_for_epoch(const group_store_t *store, int64_t wait,
                              int64_t period_ms)
{
    int64_t at = store->ready + GROUP_CONFIRM_MS;

    if (store->complete || store->ready == 0) {
        return wait;
    }
    if (!store->old && !is_continued(store, period_ms, store->ready)) {
        at = max_of(at, store->ready + period_ms);
    }
    at = max_of(1, at - store->now);
    return wait < at ? wait : at;
}

static void grant(group_store_t *store, const rlr_message_item_t *item,
                  rlr_message_grant_t *out)
{
    int64_t interval_ms = (int64_t)item->limit.interval_sec * 1000;
    int64_t period_ms = rlr_period_lease(item->limit.interval_sec);
    int64_t lease_ms = item->limit.count > MARKS_MAX ? period_ms : 0;
    group_entry_t *entry = group_marks_find(&store->marks, store->now,
                                            item->key);
    int64_t granted = item->wanted;
    group_part_t parts[MEMBERS_MAX + GROUP_MARKS_MAX + 1];
    uint32_t count = 0;
    int64_t known = is_continued(store, period_ms + interval_ms, store->known)
        ? 0
        : store->known + max_of(period_ms + interval_ms, GROUP_CONFIRM_MS)
            - store->now;
    int64_t left;
    int64_t most;
    int64_t free_now;

    group_marks_close(entry, item->closed_tag, item->closed_used);
    left = (int64_t)item->limit.count - group_marks_sum(entry)
        - reserve(parts, &count, store, item);
    free_now = known > 0 ? 0 : left;
    most = free_now > 0 ? free_now / (2 * store->members) : 0;
    most = max_of(most, item->waiting);
    granted = granted < free_now ? granted : free_now;
    granted = granted < most ? granted : most;
    granted = max_of(granted, 0);
    if (granted > 0) {
        group_marks_add(entry, store->now + 1 + lease_ms + interval_ms,
                        (uint32_t)granted, item->tag);
    }
    out->granted = (uint32_t)granted;
    out->remaining = (uint32_t)max_of(0, free_now - granted);
    out->reset_ms = entry->count > 0
        ? (uint32_t)(entry->marks[0].expires - store->now)
        : 0;
    out->wait_ms = granted >= item->waiting
        ? 0
        : max_of(
            known,
            wait_for_epoch(store,
                           group_marks_wait(entry, parts, count,
                                            1 - left + granted, store->now),
                           period_ms + interval_ms));
}

static void heartbeat(group_store_t *store, const rlr_message_call_t *call,
                      rlr_message_reply_t *reply)
{
    int number = find_number(store, call);

    if (number < 0) {
        reply->status = RLR_MESSAGE_FULL;
        return;
    }
    if (has_left(&store->records[number], call)) {
        reply->status = RLR_MESSAGE_LATE;
        return;
    }
    renew(store, number, call);
    if ((call->flags & RLR_MESSAGE_LEAVE) != 0 && call->item_count == 0) {
        leave(store, number);
    }
    reply->number = number;
    reply->base_offset_ms = store->records[number].base - store->now;
    reply->joined_offset_ms = store->records[number].joined - store->now;
    reply->complete = store->complete;
    for (uint32_t i = 0; i < call->item_count; i++) {
        grant(store, &call->items[i], &reply->grants[i]);
    }
}

void group_store_call(group_store_t *store, uint64_t us,
                      const rlr_message_call_t *call,
                      rlr_message_reply_t *reply)
{
    store->now = (int64_t)((double)us / 1000 * store->rate) + store->offset_ms;
    reply->now_ms = (uint64_t)store->now;
    reply->number = RLR_MESSAGE_NO_NUMBER;
    reply->base_offset_ms = 0;
    reply->joined_offset_ms = 0;
    reply->status = group_epoch_take(store, call);
    memcpy(reply->epoch, store->name, sizeof(reply->epoch));
    reply->complete = reply->status == RLR_MESSAGE_OK && store->complete;
    if (reply->status != RLR_MESSAGE_OK || call->kind == RLR_MESSAGE_HELLO) {
        return;
    }
    if (store->now > (int64_t)call->latest_ms
        || memcmp(call->epoch, store->name, sizeof(call->epoch)) != 0) {
        reply->status = RLR_MESSAGE_LATE;
        return;
    }
    if (call->kind == RLR_MESSAGE_REPORT && !group_epoch_lacks_host(store)) {
        group_epoch_touch(store);
    }
    for (uint32_t i = 0; i < call->mark_count; i++) {
        group_marks_add(
            group_marks_find(&store->marks, store->now, call->marks[i].key),
            store->now + 1 + (int64_t)call->marks[i].expires_in_ms,
            call->marks[i].amount, 0);
    }
    if (call->kind == RLR_MESSAGE_HEARTBEAT) {
        heartbeat(store, call, reply);
    }
}
