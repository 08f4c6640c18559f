/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the calls of all partitions together, and takes the replies. The nodes
 * of a cluster answer one by one: a round waits for each as long as a request
 * does, and later ones take the replies of slower nodes. */
#include "exchange.h"

#include <string.h>
#include <time.h>

#include "reply.h"

/* From the second exchange without a reply to the next attempt. The first may
 * have used a connection that a firewall had dropped. */
#define RETRY_MS 300U
/* Rounds until a pending request is sent: hello, report, heartbeat, the request
 * itself, and pauses for locks. */
#define ROUNDS   12
#define PAUSE_NS 500000

/* ---- Receiving ---- */

/* Takes the replies that have come, and ends calls that are too old to be used;
 * returns the partitions, a bit each, whose replies are outstanding. */
static uint32_t take_replies(rlr_exchange_t *exchange)
{
    uint32_t outstanding = 0;

    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        rlr_flight_t *flight = &exchange->flights[i];

        if (!flight->is_sent || flight->call.kind == RLR_MESSAGE_REPORT) {
            continue;
        }
        if (rlr_clock_now().floor_ms > flight->sent_ms + RLR_PERIOD_CALL_MS) {
            rlr_connection_expire(exchange->connection, i);
        }
        if (rlr_connection_has_reply(exchange->connection, i)) {
            rlr_reply_take(exchange, flight);
        }
        else {
            outstanding |= 1U << i;
        }
    }
    return outstanding;
}

/* Waits for the replies of all nodes that are not slow, but no longer than a
 * request does. */
static void receive_from_nodes(rlr_exchange_t *exchange)
{
    uint64_t until_ms = rlr_clock_now().floor_ms + exchange->timeout_ms;
    uint64_t now_ms;

    rlr_connection_poll(exchange->connection, 0);
    while ((take_replies(exchange) & ~exchange->slow) != 0
           && (now_ms = rlr_clock_now().floor_ms) < until_ms) {
        rlr_connection_poll(exchange->connection, (int)(until_ms - now_ms));
    }
    exchange->slow |= take_replies(exchange);
}

/* Reports last: they are sent one after the other. */
static void receive(rlr_exchange_t *exchange)
{
    if (rlr_connection_has_nodes(exchange->connection)) {
        receive_from_nodes(exchange);
    }
    for (int are_reports = 0; are_reports <= 1; are_reports++) {
        for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
            rlr_flight_t *flight = &exchange->flights[i];
            bool is_report = flight->call.kind == RLR_MESSAGE_REPORT;

            if (flight->is_sent && is_report == (are_reports == 1)
                && (is_report
                    || !rlr_connection_has_nodes(exchange->connection))) {
                rlr_reply_take(exchange, flight);
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
    /* A wait for the lock, which a stopped process may hold, would delay the
     * calls of the other partitions. The next round tries again. */
    rlr_partition_state_t *state = rlr_shared_try_lock(
        exchange->shared, partition, rlr_clock_now().floor_ms);

    if (state == NULL) {
        exchange->blocked &= ~(1U << partition);
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

/* Finishes requests for partitions with a call under way, undecided: that call
 * takes longer than a request waits. */
static void drop_delayed(rlr_exchange_t *exchange, rlr_pending_request_t **list)
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
            exchange->shared, i, rlr_clock_now().floor_ms);

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
           && (exchange->blocked >> rlr_shared_partition_of(list->key) & 1)
               != 0) {
        list = list->next;
    }
    return list != NULL;
}

/* Moves the requests of calls whose connections had ended to the list, once in
 * an exchange. */
static void take_repeated(rlr_exchange_t *exchange,
                          rlr_pending_request_t **list)
{
    while (exchange->repeated != NULL) {
        rlr_pending_request_t *pending = exchange->repeated;

        exchange->repeated = pending->next;
        pending->next = *list;
        *list = pending;
    }
    exchange->may_repeat = !exchange->has_repeated;
}

static void run_round(rlr_exchange_t *exchange, rlr_pending_request_t **list)
{
    static const struct timespec pause = {0, PAUSE_NS};
    rlr_stats_t *stats = rlr_shared_stats(exchange->shared);
    uint32_t added = 0;
    uint64_t us;

    rlr_connection_poll(exchange->connection, 0);
    take_replies(exchange);
    drop_delayed(exchange, list);
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
    receive(exchange);
    us = get_us() - us;
    take_repeated(exchange, list);
    rlr_stats_round(stats, us,
                    exchange->error != NULL || exchange->has_repeated);
    /* Else the time is not that of all replies. */
    if (exchange->error == NULL && !exchange->has_repeated
        && find_outstanding(exchange) == 0) {
        rlr_stats_trip(stats, us);
        rlr_queue_note_answer(exchange->queue, us / 1000);
    }
}

bool rlr_exchange_is_waiting(const rlr_exchange_t *exchange)
{
    return find_outstanding(exchange) != 0
        || (exchange->is_failing && exchange->attempt_ms == 0);
}

/* Sets the partitions that are away after an exchange; if all are, the next
 * exchange waits. */
static void end_exchange(rlr_exchange_t *exchange)
{
    /* Without a call nothing is known about the store. */
    if (!rlr_connection_has_nodes(exchange->connection)
        && (exchange->error != NULL || exchange->is_answered)) {
        exchange->away.partitions = exchange->is_answered ? 0 : RLR_AWAY_ALL;
    }
    rlr_queue_set_away(exchange->queue,
                       exchange->away.partitions | find_outstanding(exchange));
    if (exchange->error != NULL && exchange->away.partitions == RLR_AWAY_ALL) {
        bool is_at_once = exchange->may_reopen && !exchange->is_failing;

        /* A store that cannot write would execute a heartbeat soon after the
         * one before: it writes nothing. */
        exchange->attempt_ms = is_at_once ? 0
                                          : rlr_clock_now().floor_ms + RETRY_MS;
        if (is_at_once) {
            memset(exchange->away.tried_ms, 0, sizeof(exchange->away.tried_ms));
        }
        exchange->is_failing = true;
    }
    else if (exchange->is_answered) {
        exchange->is_failing = false;
    }
}

/* Ends all calls: a later configuration has another store. */
static void end_calls(rlr_exchange_t *exchange)
{
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        if (exchange->flights[i].is_sent) {
            rlr_connection_expire(exchange->connection, i);
            exchange->flights[i].is_sent = false;
            rlr_reply_abandon(exchange, &exchange->flights[i]);
        }
    }
    exchange->is_answered = false;
    rlr_queue_set_away(exchange->queue, RLR_AWAY_ALL);
}

const char *rlr_exchange_run(rlr_exchange_t *exchange,
                             rlr_pending_request_t *pending_requests,
                             apr_pool_t *scratch)
{
    uint64_t now_ms = rlr_clock_now().floor_ms;

    exchange->error = NULL;
    exchange->scratch = scratch;
    if (!rlr_shared_has_store(exchange->shared)) {
        end_calls(exchange);
    }
    else if (now_ms >= exchange->attempt_ms) {
        exchange->is_answered = false;
        exchange->is_refused = false;
        exchange->is_clock_set = false;
        exchange->has_repeated = false;
        exchange->may_repeat = true;
        exchange->may_reopen = false;
        exchange->error = rlr_connection_open(exchange->connection);
        if (exchange->error != NULL) {
            rlr_stats_error(rlr_shared_stats(exchange->shared));
            exchange->away.partitions = RLR_AWAY_ALL;
        }
        for (int i = 0; exchange->error == NULL && i < ROUNDS
             && (i == 0 || may_send(exchange, pending_requests)
                 || (i < 3 && is_joining(exchange)));
             i++) {
            run_round(exchange, &pending_requests);
        }
        end_exchange(exchange);
    }
    rlr_queue_drop(exchange->queue, pending_requests);
    return exchange->error;
}
