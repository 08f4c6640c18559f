/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the calls of all partitions together, and takes the replies. The nodes
 * of a cluster answer one by one: a round waits for each as long as a request
 * does, and later ones take the replies of slower nodes. */
#include "exchange.h"

#include <string.h>
#include <time.h>

#include <apr_strings.h>

#include "../protocol/lease_table.h"

/* After a call that the store has ignored, or answered too late. */
#define PAUSE_MS(members) (members)
#define RETRY_MS          300U
#define MARKS_MAX         512U
/* For the marks of one call. */
#define REPORT_MS 10000U
/* Until a reply that is not waited for is noticed. */
#define NOTICE_MS 2U
/* Calls until a pending request is sent: hello, report, heartbeat, pending
 * request; and pauses for locks. */
#define ROUNDS   12
#define PAUSE_NS 500000

/* ---- Reports ---- */

static void set_alone(const rlr_exchange_t *exchange, uint32_t partition,
                      uint64_t until_ms)
{
    rlr_partition_state_t *state = rlr_shared_lock(exchange->shared, partition,
                                                   rlr_flight_time().floor_ms);

    if (state != NULL) {
        state->alone_until_ms = until_ms;
        rlr_shared_unlock(exchange->shared, partition);
    }
}

/* The partitions whose reports follow, and this one, are kept: if this process
 * dies another one begins. */
static void keep_reports(const rlr_exchange_t *exchange, uint32_t first)
{
    for (uint32_t i = first; i < RLR_SHARED_PARTITIONS; i++) {
        const rlr_flight_t *next = &exchange->flights[i];

        if (next->is_sent && next->call.kind == RLR_MESSAGE_REPORT) {
            set_alone(exchange, i,
                      rlr_flight_time().floor_ms + RLR_FLIGHT_ALONE_MS);
        }
    }
}

/* Sends all marks of the partition in calls of their own. */
static const char *send_marks(rlr_exchange_t *exchange, rlr_flight_t *flight,
                              rlr_message_reply_t *reply, apr_pool_t *scratch)
{
    rlr_message_mark_t *marks = apr_palloc(scratch, MARKS_MAX * sizeof(*marks));
    uint64_t latest_ms = flight->call.latest_ms + REPORT_MS;
    uint32_t cursor = 0;
    const char *error = NULL;

    flight->call.marks = marks;
    do {
        apr_pool_clear(flight->pool);
        keep_reports(exchange, flight->partition);
        /* However late, it only adds marks; those of other partitions and hosts
         * may take the store for longer than one call may. */
        flight->call.latest_ms = latest_ms + rlr_flight_time().floor_ms
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

/* ---- Receiving ---- */

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
        rlr_shared_lose(exchange->shared, flight->partition,
                        rlr_lease_live_until(&none, now_ms));
    }
    rlr_queue_finish(exchange->queue, pending, true, admitted);
}

/* Until when no call of the partition is sent, after this one. */
static void set_pause_locked(const rlr_exchange_t *exchange,
                             rlr_partition_state_t *state,
                             const rlr_flight_t *flight, bool is_accepted,
                             uint64_t now_ms)
{
    if (!state->member.is_confirmed || flight->call.item_count == 0) {
        state->alone_until_ms = 0;
    }
    if (!is_accepted && flight->call.kind == RLR_MESSAGE_HEARTBEAT
        && !state->member.is_confirmed) {
        state->alone_until_ms = now_ms + PAUSE_MS(exchange->member.members);
    }
}

/* Takes the reply; true if it was accepted or needs no acceptance. */
static bool answer(rlr_exchange_t *exchange, const rlr_flight_t *flight,
                   const rlr_message_reply_t *reply)
{
    uint64_t now_ms = rlr_flight_time().ceil_ms;
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
            state->absent = reply->absent;
        }
        if (flight->call.kind == RLR_MESSAGE_REPORT
            && reply->status == RLR_MESSAGE_OK) {
            rlr_member_reported(&state->member, flight->generation);
        }
        set_pause_locked(exchange, state, flight, is_accepted, now_ms);
    }
    /* With the lock: a report that follows has these marks. */
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

/* Finishes the pending requests of a call without a reply. A report is not
 * waited for: another one only adds the marks again. */
static void abandon(rlr_exchange_t *exchange, const rlr_flight_t *flight)
{
    if (flight->call.kind == RLR_MESSAGE_REPORT) {
        set_alone(exchange, flight->partition, 0);
    }
    for (uint32_t i = 0; i < flight->call.item_count; i++) {
        rlr_queue_finish(exchange->queue, flight->pending_requests[i], false,
                         0);
    }
}

typedef struct result_t {
    const char *error; /* the first one */
    apr_pool_t *scratch;
} result_t;

/* Takes the reply to the call, after waiting for it if it has not come. */
static void take_reply(rlr_exchange_t *exchange, rlr_flight_t *flight,
                       result_t *result)
{
    uint32_t bit = 1U << flight->partition;
    uint32_t items = flight->call.kind == RLR_MESSAGE_HEARTBEAT
        ? flight->call.item_count
        : 0;
    rlr_message_reply_t reply = {
        .grants = apr_pcalloc(result->scratch,
                              (items + 1) * sizeof(*reply.grants))};
    const char *error = flight->call.kind == RLR_MESSAGE_REPORT
        ? send_marks(exchange, flight, &reply, result->scratch)
        : rlr_connection_receive(exchange->connection, flight->partition,
                                 &reply, items);
    uint64_t took_ms = rlr_flight_time().floor_ms - flight->sent_ms;

    flight->is_sent = false;
    if (took_ms > exchange->timeout_ms + NOTICE_MS) {
        exchange->slow |= bit;
        if (error == NULL && rlr_connection_has_nodes(exchange->connection)) {
            rlr_stats_trip(rlr_shared_stats(exchange->shared), took_ms * 1000);
        }
    }
    else {
        exchange->slow &= ~bit;
    }
    /* Kept: the next call overwrites it. */
    if (error != NULL && result->error == NULL) {
        result->error = apr_pstrdup(result->scratch, error);
    }
    if (error != NULL || !answer(exchange, flight, &reply)) {
        if (error != NULL) {
            rlr_away_set(&exchange->away, flight->partition, true);
        }
        abandon(exchange, flight);
        return;
    }
    error = rlr_away_refusal(&reply);
    rlr_away_set(&exchange->away, flight->partition, error != NULL);
    exchange->is_answered |= error == NULL;
    if (result->error == NULL) {
        result->error = error;
        exchange->is_refused = error != NULL;
    }
}

/* Takes the replies that have come, and ends calls that are too old to be used;
 * returns the partitions, a bit each, whose replies are outstanding. */
static uint32_t take_replies(rlr_exchange_t *exchange, result_t *result)
{
    uint32_t outstanding = 0;

    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        rlr_flight_t *flight = &exchange->flights[i];

        if (!flight->is_sent || flight->call.kind == RLR_MESSAGE_REPORT) {
            continue;
        }
        if (rlr_flight_time().floor_ms > flight->sent_ms + RLR_PERIOD_CALL_MS) {
            rlr_connection_expire(exchange->connection, i);
        }
        if (rlr_connection_has_reply(exchange->connection, i)) {
            take_reply(exchange, flight, result);
        }
        else {
            outstanding |= 1U << i;
        }
    }
    return outstanding;
}

/* Waits for the replies of all nodes that are not slow, but no longer than a
 * request does. */
static void receive_from_nodes(rlr_exchange_t *exchange, result_t *result)
{
    uint64_t until_ms = rlr_flight_time().floor_ms + exchange->timeout_ms;
    uint64_t now_ms;

    rlr_connection_poll(exchange->connection, 0);
    while ((take_replies(exchange, result) & ~exchange->slow) != 0
           && (now_ms = rlr_flight_time().floor_ms) < until_ms) {
        rlr_connection_poll(exchange->connection, (int)(until_ms - now_ms));
    }
    exchange->slow |= take_replies(exchange, result);
}

/* Reports last: they are sent one after the other. */
static void receive(rlr_exchange_t *exchange, result_t *result)
{
    if (rlr_connection_has_nodes(exchange->connection)) {
        receive_from_nodes(exchange, result);
    }
    for (int are_reports = 0; are_reports <= 1; are_reports++) {
        for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
            rlr_flight_t *flight = &exchange->flights[i];
            bool is_report = flight->call.kind == RLR_MESSAGE_REPORT;

            if (flight->is_sent && is_report == (are_reports == 1)
                && (is_report
                    || !rlr_connection_has_nodes(exchange->connection))) {
                take_reply(exchange, flight, result);
            }
        }
    }
}

/* ---- Rounds ---- */

/* Adds a call of the partition, if one is due; true if there is one. */
static bool add_flight(rlr_exchange_t *exchange, uint32_t partition,
                       rlr_pending_request_t **list)
{
    rlr_flight_t *flight = &exchange->flights[partition];
    /* While it is waited for the calls of the other partitions would age: a
     * process may be stopped with the lock. The next round tries again. */
    rlr_partition_state_t *state = rlr_shared_try_lock(
        exchange->shared, partition, rlr_flight_time().floor_ms);

    if (state == NULL) {
        exchange->held &= ~(1U << partition);
        return false;
    }
    flight->partition = partition;
    flight->items = NULL;
    if (flight->pool == NULL) {
        apr_pool_create(&flight->pool, exchange->pool);
    }
    apr_pool_clear(flight->pool);
    flight->is_sent = rlr_flight_fill_locked(exchange, flight, state, list);
    /* Marks are sent once all other replies have arrived. */
    if (flight->is_sent && flight->call.kind != RLR_MESSAGE_REPORT) {
        rlr_connection_add(exchange->connection, &flight->call, partition,
                           flight->pool);
    }
    rlr_shared_unlock(exchange->shared, partition);
    return flight->is_sent;
}

/* Drops the requests for partitions whose calls are under way: these take
 * longer than a request waits. */
static void drop_waiting(rlr_exchange_t *exchange, rlr_pending_request_t **list)
{
    rlr_pending_request_t **at = list;

    while (*at != NULL) {
        rlr_pending_request_t *pending = *at;

        if (exchange->flights[rlr_shared_partition_of(pending->key)].is_sent) {
            *at = pending->next;
            rlr_queue_finish(exchange->queue, pending, false, 0);
        }
        else {
            at = &pending->next;
        }
    }
}

/* Whether a partition is not connected, so that its next call is due at
 * once. */
static bool is_joining(rlr_exchange_t *exchange)
{
    bool joining = false;

    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS && !joining; i++) {
        rlr_partition_state_t *state = rlr_shared_try_lock(
            exchange->shared, i, rlr_flight_time().floor_ms);

        if (state != NULL) {
            joining = !state->member.is_confirmed || state->member.is_clock_set;
            rlr_shared_unlock(exchange->shared, i);
        }
    }
    return joining;
}

static uint64_t get_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The partitions, a bit each, with a call under way. */
static uint32_t find_outstanding(const rlr_exchange_t *exchange)
{
    uint32_t outstanding = 0;

    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        outstanding |= (uint32_t)exchange->flights[i].is_sent << i;
    }
    return outstanding;
}

/* Whether a pending request may be sent in the next round: not while a call of
 * another process is waited for, which may take longer than a request does. */
static bool may_send(const rlr_exchange_t *exchange,
                     const rlr_pending_request_t *list)
{
    while (list != NULL
           && (exchange->held >> rlr_shared_partition_of(list->key) & 1) != 0) {
        list = list->next;
    }
    return list != NULL;
}

static void run_round(rlr_exchange_t *exchange, rlr_pending_request_t **list,
                      result_t *result)
{
    static const struct timespec pause = {0, PAUSE_NS};
    rlr_stats_t *stats = rlr_shared_stats(exchange->shared);
    uint32_t added = 0;
    uint64_t us;

    rlr_connection_poll(exchange->connection, 0);
    take_replies(exchange, result);
    drop_waiting(exchange, list);
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        if (!exchange->flights[i].is_sent) {
            added += add_flight(exchange, i, list);
        }
    }
    if (added == 0) {
        if (may_send(exchange, *list)) {
            nanosleep(&pause, NULL);
        }
        return;
    }
    us = get_us();
    rlr_connection_flush(exchange->connection);
    receive(exchange, result);
    us = get_us() - us;
    rlr_stats_round(stats, us, result->error != NULL);
    /* Otherwise it has not waited for all replies. */
    if (result->error == NULL && find_outstanding(exchange) == 0) {
        rlr_stats_trip(stats, us);
    }
}

bool rlr_exchange_is_waiting(const rlr_exchange_t *exchange)
{
    return find_outstanding(exchange) != 0;
}

/* Which partitions are away after an exchange; if all are, the next one has to
 * wait. */
static void take_result(rlr_exchange_t *exchange, const char *error)
{
    /* If no call was due, nothing is known. */
    if (!rlr_connection_has_nodes(exchange->connection)
        && (error != NULL || exchange->is_answered)) {
        exchange->away.partitions = exchange->is_answered ? 0 : RLR_AWAY_ALL;
    }
    rlr_queue_set_away(exchange->queue,
                       exchange->away.partitions | find_outstanding(exchange));
    if (error != NULL && exchange->away.partitions == RLR_AWAY_ALL) {
        exchange->attempt_ms = rlr_flight_time().floor_ms + RETRY_MS;
    }
}

/* Ends all calls: a later configuration has another store. */
static void end_calls(rlr_exchange_t *exchange)
{
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        if (exchange->flights[i].is_sent) {
            rlr_connection_expire(exchange->connection, i);
            exchange->flights[i].is_sent = false;
            abandon(exchange, &exchange->flights[i]);
        }
    }
    exchange->is_answered = false;
    rlr_queue_set_away(exchange->queue, RLR_AWAY_ALL);
}

const char *rlr_exchange_run(rlr_exchange_t *exchange,
                             rlr_pending_request_t *pending_requests,
                             apr_pool_t *scratch)
{
    uint64_t now_ms = rlr_flight_time().floor_ms;
    result_t result = {NULL, scratch};

    if (!rlr_shared_has_store(exchange->shared)) {
        end_calls(exchange);
    }
    else if (now_ms >= exchange->attempt_ms) {
        exchange->is_answered = false;
        exchange->is_refused = false;
        exchange->is_clock_set = false;
        result.error = rlr_connection_open(exchange->connection);
        if (result.error != NULL) {
            rlr_stats_error(rlr_shared_stats(exchange->shared));
            exchange->away.partitions = RLR_AWAY_ALL;
        }
        for (int i = 0; result.error == NULL && i < ROUNDS
             && (i == 0 || may_send(exchange, pending_requests)
                 || (i < 3 && is_joining(exchange)));
             i++) {
            run_round(exchange, &pending_requests, &result);
        }
        take_result(exchange, result.error);
    }
    rlr_queue_drop(exchange->queue, pending_requests);
    return result.error;
}
