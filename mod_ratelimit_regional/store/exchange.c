/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the calls of all partitions, sends them together, and takes the
 * replies in order. */
#include "exchange.h"

#include <string.h>
#include <time.h>

#include <apr_strings.h>

#include "../group/leases.h"
#include "../group/period.h"

/* Milliseconds between heartbeats of an idle partition; with more hosts more,
 * so that one store has time for all. */
#define IDLE_MS(members) (300U + 3U * (members) / 5U)
/* Of one in an epoch that is not complete yet. */
#define JOINING_MS(members) (80U + (members))
/* After a call that the store has ignored, or answered too late. */
#define PAUSE_MS(members) (members)
#define RETRY_MS          300U
#define MARKS_MAX         512U
/* For the marks of one call. */
#define REPORT_MS 10000U
/* In which another process sends no call of the partition. */
#define ALONE_MS (2 * RLR_PERIOD_CALL_MS)
/* Calls until a pending request is sent: hello, report, heartbeat, pending
 * request; and pauses for calls of other children. */
#define ROUNDS   12
#define PAUSE_NS 500000

/* A call under way. */
typedef struct flight_t {
    uint32_t partition;
    uint32_t generation;
    uint64_t sent_ms;
    rlr_store_call_t call;
    rlr_store_item_t *items;
    rlr_pending_request_t
        *pending_requests[RLR_CONNECTION_ITEMS_MAX]; /* of the items */
} flight_t;

typedef struct flights_t {
    flight_t *all;
    uint32_t count;
    uint32_t room;
} flights_t;

static rlr_time_t get_time(void)
{
    rlr_time_t now;

    rlr_clock_monotonic.read(&now, rlr_clock_monotonic.baton);
    return now;
}

/* ---- Sending ---- */

static uint64_t take_tag(rlr_exchange_t *exchange)
{
    exchange->tag = exchange->tag % RLR_STORE_TAG_MAX + 1;
    return exchange->tag;
}

static void fill_item(rlr_exchange_t *exchange, rlr_store_item_t *item,
                      const rlr_pending_request_t *pending, uint64_t now_ms)
{
    rlr_lease_t *lease = rlr_leases_lock(exchange->ledger, pending->key,
                                         pending->limit, now_ms);
    rlr_lease_t none;

    /* Without a slot only what is needed now. */
    rlr_lease_init(&none, pending->key, pending->limit);
    rlr_lease_request(item, lease != NULL ? lease : &none, pending->waiting,
                      take_tag(exchange), now_ms);
    if (lease != NULL) {
        rlr_leases_unlock(exchange->ledger, lease);
    }
}

/* Moves pending requests of the partition from the list to the flight. */
static void take_pending_requests(rlr_exchange_t *exchange, flight_t *flight,
                                  rlr_pending_request_t **list,
                                  apr_pool_t *scratch)
{
    rlr_pending_request_t **at = list;
    uint32_t count = 0;

    flight->items = apr_pcalloc(
        scratch, RLR_CONNECTION_ITEMS_MAX * sizeof(*flight->items));
    while (*at != NULL && count < RLR_CONNECTION_ITEMS_MAX) {
        rlr_pending_request_t *pending = *at;

        /* A reset is a call of its own. */
        if (rlr_ledger_partition_of(pending->key) != flight->partition
            || (count > 0
                && pending->is_reset
                    != flight->pending_requests[0]->is_reset)) {
            at = &pending->next;
            continue;
        }
        *at = pending->next;
        if (pending->is_reset) {
            flight->call.kind = RLR_STORE_RESET;
            memcpy(flight->items[count].key, pending->key,
                   sizeof(pending->key));
            flight->items[count].tag = take_tag(exchange);
        }
        else {
            fill_item(exchange, &flight->items[count], pending,
                      flight->sent_ms);
        }
        flight->pending_requests[count++] = pending;
    }
    flight->call.items = flight->items;
    flight->call.item_count = count;
}

static bool has_pending_request(const rlr_pending_request_t *list,
                                uint32_t partition)
{
    while (list != NULL && rlr_ledger_partition_of(list->key) != partition) {
        list = list->next;
    }
    return list != NULL;
}

static bool is_due(const rlr_exchange_t *exchange, uint32_t partition,
                   const rlr_ledger_state_t *state, uint64_t now_ms,
                   bool has_pending_requests)
{
    uint32_t members = exchange->member.members;

    return has_pending_requests
        || rlr_away_is_due(&exchange->away, partition, now_ms)
        || !state->member.is_confirmed
        || now_ms >= state->member.heartbeat_until_ms
        || now_ms >= state->heartbeat_sent_ms
            + (state->member.is_complete ? IDLE_MS(members)
                                         : JOINING_MS(members));
}

/* Fills a call of the partition, if one is due and may be sent. The lock is
 * held. */
static bool fill_locked(rlr_exchange_t *exchange, flight_t *flight,
                        rlr_ledger_state_t *state, rlr_pending_request_t **list,
                        apr_pool_t *scratch)
{
    uint64_t now_ms = get_time().floor_ms;
    bool has_pending_requests = has_pending_request(*list, flight->partition);
    bool alone;
    rlr_store_kind_t kind = rlr_member_next(&state->member, &alone, now_ms);

    if (state->member.has_left || now_ms < state->alone_until_ms
        || !is_due(exchange, flight->partition, state, now_ms,
                   has_pending_requests)) {
        return false;
    }
    rlr_member_fill(&flight->call, &state->member, &exchange->member, kind,
                    now_ms);
    flight->generation = state->member.generation;
    flight->sent_ms = now_ms;
    rlr_away_try(&exchange->away, flight->partition, now_ms);
    if (alone) {
        state->alone_until_ms = now_ms + ALONE_MS;
    }
    if (kind == RLR_STORE_HEARTBEAT) {
        state->heartbeat_sent_ms = now_ms;
        if (has_pending_requests && state->member.is_confirmed) {
            take_pending_requests(exchange, flight, list, scratch);
        }
    }
    return true;
}

static void set_alone(const rlr_exchange_t *exchange, uint32_t partition,
                      uint64_t until_ms)
{
    rlr_ledger_state_t *state = rlr_ledger_lock(exchange->ledger, partition,
                                                get_time().floor_ms);

    if (state != NULL) {
        state->alone_until_ms = until_ms;
        rlr_ledger_unlock(exchange->ledger, partition);
    }
}

/* Sends all marks of the partition in calls of their own. It and the partitions
 * whose reports follow are kept: if this process dies another one begins. */
static const char *send_marks(rlr_exchange_t *exchange, flight_t *flight,
                              const flight_t *last, rlr_store_reply_t *reply,
                              apr_pool_t *scratch)
{
    rlr_store_mark_t *marks = apr_palloc(scratch, MARKS_MAX * sizeof(*marks));
    uint64_t latest_ms = flight->call.latest_ms + REPORT_MS;
    uint32_t cursor = 0;
    const char *error = NULL;
    apr_pool_t *texts;

    apr_pool_create(&texts, scratch);
    flight->call.marks = marks;
    do {
        apr_pool_clear(texts);
        /* However late, it only adds marks; those of other partitions and hosts
         * may take the store for longer than one call may. */
        flight->call.latest_ms = latest_ms + get_time().floor_ms
            - flight->sent_ms;
        for (const flight_t *next = flight; next <= last; next++) {
            set_alone(exchange, next->partition,
                      get_time().floor_ms + ALONE_MS);
        }
        flight->call.mark_count = rlr_leases_report(
            marks, MARKS_MAX, &cursor, exchange->ledger, flight->partition,
            flight->sent_ms);
        rlr_connection_add(exchange->connection, &flight->call,
                           flight->partition, texts);
        rlr_connection_flush(exchange->connection);
        error = rlr_connection_receive(exchange->connection, reply, 0);
    } while (error == NULL && reply->status == RLR_STORE_OK
             && flight->call.mark_count > 0);
    apr_pool_destroy(texts);
    return error;
}

/* ---- Receiving ---- */

static void take_grant(rlr_exchange_t *exchange, const flight_t *flight,
                       uint32_t i, const rlr_store_grant_t *grant,
                       uint64_t now_ms)
{
    rlr_pending_request_t *pending = flight->pending_requests[i];
    const rlr_store_item_t *item = &flight->items[i];
    rlr_lease_t *lease = rlr_leases_lock(exchange->ledger, pending->key,
                                         pending->limit, now_ms);
    rlr_lease_t none;
    uint32_t admitted;

    if (lease != NULL) {
        admitted = rlr_lease_grant(lease, item, grant, flight->sent_ms, now_ms);
        rlr_leases_unlock(exchange->ledger, lease);
    }
    else {
        rlr_lease_init(&none, pending->key, pending->limit);
        admitted = rlr_lease_grant(&none, item, grant, flight->sent_ms, now_ms);
        rlr_ledger_lose(exchange->ledger, flight->partition,
                        rlr_lease_live_until(&none, now_ms));
    }
    rlr_queue_finish(exchange->queue, pending, true, admitted);
}

/* Until when no call of the partition is sent, after this one. */
static void set_pause_locked(const rlr_exchange_t *exchange,
                             rlr_ledger_state_t *state, const flight_t *flight,
                             bool is_accepted, uint64_t now_ms)
{
    if (!state->member.is_confirmed || flight->call.item_count == 0) {
        state->alone_until_ms = 0;
    }
    if (!is_accepted && flight->call.kind == RLR_STORE_HEARTBEAT
        && !state->member.is_confirmed) {
        state->alone_until_ms = now_ms + PAUSE_MS(exchange->member.members);
    }
}

/* Takes the reply; true if it was accepted or needs no acceptance. */
static bool answer(rlr_exchange_t *exchange, const flight_t *flight,
                   const rlr_store_reply_t *reply)
{
    uint64_t now_ms = get_time().ceil_ms;
    rlr_ledger_state_t *state = rlr_ledger_lock(exchange->ledger,
                                                flight->partition, now_ms);
    bool is_accepted;

    if (state == NULL) {
        return false;
    }
    state->status = reply->status;
    if (flight->call.kind == RLR_STORE_RESET) {
        is_accepted = reply->status == RLR_STORE_OK;
    }
    else {
        is_accepted = rlr_member_answer(&state->member, &flight->call, reply,
                                        flight->generation, flight->sent_ms,
                                        now_ms);
        exchange->is_clock_set |= state->member.is_clock_set;
        if (is_accepted) {
            state->absent = reply->absent;
        }
        if (flight->call.kind == RLR_STORE_REPORT
            && reply->status == RLR_STORE_OK) {
            rlr_member_reported(&state->member, flight->generation);
        }
        set_pause_locked(exchange, state, flight, is_accepted, now_ms);
    }
    /* With the lock: a report that follows has these marks. */
    for (uint32_t i = 0; i < flight->call.item_count; i++) {
        if (is_accepted && flight->call.kind == RLR_STORE_HEARTBEAT) {
            take_grant(exchange, flight, i, &reply->grants[i], now_ms);
        }
        else {
            rlr_queue_finish(exchange->queue, flight->pending_requests[i],
                             is_accepted, 0);
        }
    }
    rlr_ledger_unlock(exchange->ledger, flight->partition);
    return true;
}

/* Finishes the pending requests of a call without a reply. A report is not
 * waited for: another one only adds the marks again. */
static void abandon(rlr_exchange_t *exchange, const flight_t *flight)
{
    if (flight->call.kind == RLR_STORE_REPORT) {
        set_alone(exchange, flight->partition, 0);
    }
    for (uint32_t i = 0; i < flight->call.item_count; i++) {
        rlr_queue_finish(exchange->queue, flight->pending_requests[i], false,
                         0);
    }
}

static const char *receive(rlr_exchange_t *exchange, flights_t *flights,
                           apr_pool_t *scratch)
{
    const char *first_error = NULL;

    for (uint32_t i = 0; i < flights->count; i++) {
        flight_t *flight = &flights->all[i];
        uint32_t items = flight->call.kind == RLR_STORE_HEARTBEAT
            ? flight->call.item_count
            : 0;
        rlr_store_reply_t reply = {
            .grants = apr_pcalloc(scratch,
                                  (items + 1) * sizeof(*reply.grants))};
        const char *error = flight->call.kind == RLR_STORE_REPORT
            ? send_marks(exchange, flight, &flights->all[flights->count - 1],
                         &reply, scratch)
            : rlr_connection_receive(exchange->connection, &reply, items);

        /* Kept: the next call overwrites it. */
        if (error != NULL && first_error == NULL) {
            first_error = apr_pstrdup(scratch, error);
        }
        if (error != NULL || !answer(exchange, flight, &reply)) {
            if (error != NULL) {
                rlr_away_set(&exchange->away, flight->partition, true);
            }
            abandon(exchange, flight);
            continue;
        }
        error = rlr_away_refusal(&reply);
        rlr_away_set(&exchange->away, flight->partition, error != NULL);
        exchange->is_answered |= error == NULL;
        if (first_error == NULL) {
            first_error = error;
            exchange->is_refused = error != NULL;
        }
    }
    return first_error;
}

/* ---- Rounds ---- */

static void add_flight(rlr_exchange_t *exchange, flights_t *flights,
                       uint32_t partition, rlr_pending_request_t **list,
                       apr_pool_t *scratch)
{
    flight_t *flight = &flights->all[flights->count];
    /* While it is waited for the calls of the other partitions would age: a
     * process may be stopped with the lock. The next round tries again. */
    rlr_ledger_state_t *state = rlr_ledger_try_lock(exchange->ledger, partition,
                                                    get_time().floor_ms);

    if (state == NULL) {
        return;
    }
    memset(flight, 0, sizeof(*flight));
    flight->partition = partition;
    if (fill_locked(exchange, flight, state, list, scratch)) {
        flights->count++;
        /* Marks are sent once all other replies have arrived. */
        if (flight->call.kind != RLR_STORE_REPORT) {
            rlr_connection_add(exchange->connection, &flight->call, partition,
                               scratch);
        }
    }
    rlr_ledger_unlock(exchange->ledger, partition);
}

/* Reports last: they are sent while replies are received. */
static void sort_flights(flights_t *flights)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < flights->count; i++) {
        if (flights->all[i].call.kind != RLR_STORE_REPORT) {
            flight_t flight = flights->all[i];

            flights->all[i] = flights->all[kept];
            flights->all[kept++] = flight;
        }
    }
}

/* Whether a partition is not connected, so that its next call is due at
 * once. */
static bool is_joining(rlr_exchange_t *exchange)
{
    bool joining = false;

    for (uint32_t i = 0; i < RLR_LEDGER_PARTITIONS && !joining; i++) {
        rlr_ledger_state_t *state = rlr_ledger_try_lock(exchange->ledger, i,
                                                        get_time().floor_ms);

        if (state != NULL) {
            joining = !state->member.is_confirmed || state->member.is_clock_set;
            rlr_ledger_unlock(exchange->ledger, i);
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

static const char *run_round(rlr_exchange_t *exchange,
                             rlr_pending_request_t **list, apr_pool_t *scratch)
{
    flights_t flights = {.room = RLR_LEDGER_PARTITIONS};
    const char *error;
    uint64_t begun_us;

    flights.all = apr_palloc(scratch, flights.room * sizeof(*flights.all));
    for (uint32_t i = 0; i < RLR_LEDGER_PARTITIONS; i++) {
        add_flight(exchange, &flights, i, list, scratch);
    }
    if (flights.count == 0) {
        static const struct timespec pause = {0, PAUSE_NS};

        nanosleep(&pause, NULL);
        return NULL;
    }
    sort_flights(&flights);
    begun_us = get_us();
    rlr_connection_flush(exchange->connection);
    error = receive(exchange, &flights, scratch);
    rlr_stats_round(rlr_ledger_stats(exchange->ledger), get_us() - begun_us,
                    error != NULL);
    return error;
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
    rlr_queue_set_away(exchange->queue, exchange->away.partitions);
    if (error != NULL && exchange->away.partitions == RLR_AWAY_ALL) {
        exchange->attempt_ms = get_time().floor_ms + RETRY_MS;
    }
}

const char *rlr_exchange_run(rlr_exchange_t *exchange,
                             rlr_pending_request_t *pending_requests,
                             apr_pool_t *scratch)
{
    uint64_t now_ms = get_time().floor_ms;
    const char *error = NULL;

    if (now_ms >= exchange->attempt_ms) {
        exchange->is_answered = false;
        exchange->is_refused = false;
        exchange->is_clock_set = false;
        error = rlr_connection_open(exchange->connection);
        if (error != NULL) {
            rlr_stats_error(rlr_ledger_stats(exchange->ledger));
            exchange->away.partitions = RLR_AWAY_ALL;
        }
        for (int i = 0; error == NULL && i < ROUNDS
             && (i == 0 || pending_requests != NULL
                 || (i < 3 && is_joining(exchange)));
             i++) {
            error = run_round(exchange, &pending_requests, scratch);
        }
        take_result(exchange, error);
    }
    rlr_queue_drop(exchange->queue, pending_requests);
    return error;
}
