/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the replies of the store, and sends the marks of a report. */
#include "reply.h"

#include <apr_strings.h>

#include "../protocol/lease_table.h"

/* Until the next call, after one that was ignored or answered too late. */
#define PAUSE_MS(members) (members)
#define MARKS_MAX         512U
/* How much longer than another call one with marks may take. */
#define REPORT_MS 10000U
/* A reply may have come this long before it is read. */
#define NOTICE_MS 2U

/* ---- Reports ---- */

static void set_next_call(const rlr_exchange_t *exchange, uint32_t partition,
                          uint64_t until_ms)
{
    rlr_partition_state_t *state = rlr_shared_lock(exchange->shared, partition,
                                                   rlr_clock_now().floor_ms);

    if (state != NULL) {
        state->next_call_ms = until_ms;
        rlr_shared_unlock(exchange->shared, partition);
    }
}

/* Extends the exclusive time of this partition and of those whose reports
 * follow. If this process dies, the time ends and another process reports. */
static void extend_reports(const rlr_exchange_t *exchange, uint32_t first)
{
    for (uint32_t i = first; i < RLR_SHARED_PARTITIONS; i++) {
        const rlr_flight_t *next = &exchange->flights[i];

        if (next->is_sent && next->call.kind == RLR_MESSAGE_REPORT) {
            set_next_call(exchange, i,
                          rlr_clock_now().floor_ms + RLR_FLIGHT_EXCLUSIVE_MS);
        }
    }
}

/* Sends all marks of the partition in calls of their own. */
static const char *send_marks(rlr_exchange_t *exchange, rlr_flight_t *flight,
                              rlr_message_reply_t *reply)
{
    rlr_message_mark_t *marks = apr_palloc(exchange->scratch,
                                           MARKS_MAX * sizeof(*marks));
    uint64_t latest_ms = flight->call.latest_ms + REPORT_MS;
    uint32_t cursor = 0;
    const char *error = NULL;

    flight->call.marks = marks;
    do {
        apr_pool_clear(flight->pool);
        extend_reports(exchange, flight->partition);
        /* A late report does no harm, since it only adds marks; the store may
         * be busy with other reports for longer than a call may take. */
        flight->call.latest_ms = latest_ms + rlr_clock_now().floor_ms
            - flight->sent_ms;
        flight->call.mark_count = rlr_lease_table_report(
            marks, MARKS_MAX, &cursor, exchange->shared, flight->partition,
            flight->sent_ms);
        rlr_connection_add(exchange->connection, &flight->call,
                           flight->partition, flight->pool);
        rlr_connection_flush(exchange->connection);
        error = rlr_connection_receive(exchange->connection, flight->partition,
                                       reply, 0);
    } while (error == NULL && reply->status == RLR_MESSAGE_OK
             && flight->call.mark_count > 0);
    return error;
}

/* ---- Replies ---- */

static void take_grant(rlr_exchange_t *exchange, const rlr_flight_t *flight,
                       uint32_t i, const rlr_message_grant_t *grant,
                       uint64_t now_ms)
{
    rlr_pending_request_t *pending = flight->pending_requests[i];
    const rlr_message_item_t *item = &flight->items[i];
    rlr_lease_t *lease = rlr_lease_table_lock(exchange->shared, pending->key,
                                              pending->limit, now_ms);
    rlr_lease_t none;
    uint32_t admitted;

    if (lease != NULL) {
        admitted = rlr_lease_grant(lease, item, grant, flight->sent_ms, now_ms);
        rlr_lease_table_unlock(exchange->shared, lease);
    }
    else {
        rlr_lease_init(&none, pending->key, pending->limit);
        admitted = rlr_lease_grant(&none, item, grant, flight->sent_ms, now_ms);
        rlr_shared_record_loss(exchange->shared, flight->partition,
                               rlr_lease_live_until(&none, now_ms));
    }
    rlr_queue_finish(exchange->queue, pending, true, admitted);
}

/* Sets when the next call of the partition may be sent. */
static void schedule_next_locked(const rlr_exchange_t *exchange,
                                 rlr_partition_state_t *state,
                                 const rlr_flight_t *flight, bool is_accepted,
                                 uint64_t now_ms)
{
    if (!state->member.is_confirmed || flight->call.item_count == 0) {
        state->next_call_ms = 0;
    }
    if (!is_accepted && flight->call.kind == RLR_MESSAGE_HEARTBEAT
        && !state->member.is_confirmed) {
        state->next_call_ms = now_ms + PAUSE_MS(exchange->member.members);
    }
}

/* Applies the reply to the membership, and finishes its requests. False: the
 * lock of the partition is not free. */
static bool apply_reply(rlr_exchange_t *exchange, const rlr_flight_t *flight,
                        const rlr_message_reply_t *reply)
{
    uint64_t now_ms = rlr_clock_now().ceil_ms;
    rlr_partition_state_t *state = rlr_shared_lock(exchange->shared,
                                                   flight->partition, now_ms);
    bool is_accepted;

    if (state == NULL) {
        return false;
    }
    state->status = reply->status;
    if (flight->call.kind == RLR_MESSAGE_RESET) {
        is_accepted = reply->status == RLR_MESSAGE_OK;
    }
    else {
        is_accepted = rlr_member_answer(&state->member, &flight->call, reply,
                                        flight->generation, flight->sent_ms,
                                        now_ms);
        exchange->is_clock_set |= state->member.is_clock_set;
        if (is_accepted) {
            state->group = reply->group;
        }
        if (flight->call.kind == RLR_MESSAGE_REPORT
            && reply->status == RLR_MESSAGE_OK) {
            rlr_member_reported(&state->member, flight->generation);
        }
        schedule_next_locked(exchange, state, flight, is_accepted, now_ms);
    }
    /* Under the lock, so that the next report has the marks of these grants. */
    for (uint32_t i = 0; i < flight->call.item_count; i++) {
        if (is_accepted && flight->call.kind == RLR_MESSAGE_HEARTBEAT) {
            take_grant(exchange, flight, i, &reply->grants[i], now_ms);
        }
        else {
            rlr_queue_finish(exchange->queue, flight->pending_requests[i],
                             is_accepted, 0);
        }
    }
    rlr_shared_unlock(exchange->shared, flight->partition);
    return true;
}

/* Another process may repeat a report at once: that adds the same marks again.
 */
void rlr_reply_abandon(rlr_exchange_t *exchange, const rlr_flight_t *flight)
{
    if (flight->call.kind == RLR_MESSAGE_REPORT) {
        set_next_call(exchange, flight->partition, 0);
    }
    for (uint32_t i = 0; i < flight->call.item_count; i++) {
        rlr_queue_finish(exchange->queue, flight->pending_requests[i], false,
                         0);
    }
}

/* Whether the call has failed only since its connection had ended: its requests
 * are sent in another one. If the store has executed it, that is as if its
 * reply had been lost. */
static bool repeat(rlr_exchange_t *exchange, const rlr_flight_t *flight,
                   uint64_t took_ms)
{
    if (!exchange->may_repeat || flight->call.kind == RLR_MESSAGE_REPORT
        || took_ms > exchange->timeout_ms
        || !rlr_connection_is_lost(exchange->connection, flight->partition)) {
        return false;
    }
    exchange->has_repeated = true;
    for (uint32_t i = 0; i < flight->call.item_count; i++) {
        flight->pending_requests[i]->next = exchange->repeated;
        exchange->repeated = flight->pending_requests[i];
    }
    return true;
}

/* Records how long the reply took, and whether that was too long. */
static void record_time(rlr_exchange_t *exchange, uint32_t partition,
                        uint64_t took_ms, bool is_answered)
{
    uint32_t bit = 1U << partition;

    if (took_ms <= exchange->timeout_ms + NOTICE_MS) {
        exchange->slow &= ~bit;
        return;
    }
    exchange->slow |= bit;
    if (is_answered && rlr_connection_has_nodes(exchange->connection)) {
        rlr_stats_trip(rlr_shared_stats(exchange->shared), took_ms * 1000);
    }
}

void rlr_reply_take(rlr_exchange_t *exchange, rlr_flight_t *flight)
{
    uint32_t items = flight->call.kind == RLR_MESSAGE_HEARTBEAT
        ? flight->call.item_count
        : 0;
    rlr_message_reply_t reply = {
        .grants = apr_pcalloc(exchange->scratch,
                              (items + 1) * sizeof(*reply.grants))};
    const char *error = flight->call.kind == RLR_MESSAGE_REPORT
        ? send_marks(exchange, flight, &reply)
        : rlr_connection_receive(exchange->connection, flight->partition,
                                 &reply, items);
    uint64_t took_ms = rlr_clock_now().floor_ms - flight->sent_ms;

    flight->is_sent = false;
    if (error != NULL && repeat(exchange, flight, took_ms)) {
        return;
    }
    record_time(exchange, flight->partition, took_ms, error == NULL);
    /* Copied, since the next call overwrites the text. */
    if (error != NULL && exchange->error == NULL) {
        exchange->error = apr_pstrdup(exchange->scratch, error);
        exchange->may_reopen = rlr_connection_is_lost(exchange->connection,
                                                      flight->partition);
    }
    if (error != NULL || !apply_reply(exchange, flight, &reply)) {
        if (error != NULL) {
            rlr_away_set(&exchange->away, flight->partition, true);
        }
        rlr_reply_abandon(exchange, flight);
        return;
    }
    /* A store that cannot write replies so, too: it may still be away. */
    if (reply.status == RLR_MESSAGE_LATE) {
        return;
    }
    error = rlr_away_refusal(&reply);
    rlr_away_set(&exchange->away, flight->partition, error != NULL);
    exchange->is_answered |= error == NULL;
    if (exchange->error == NULL) {
        exchange->error = error;
        exchange->is_refused = error != NULL;
    }
}
