/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the call of a partition, with its pending requests. */
#include "flight.h"

#include <string.h>

#include "../protocol/lease_table.h"
#include "../protocol/period.h"

/* Milliseconds between heartbeats of an idle partition; with more hosts more,
 * so that one store has time for all. */
#define IDLE_MS(members) (300U + 3U * (members) / 5U)
/* Of one in an epoch that is not complete yet. */
#define JOINING_MS(members) (80U + (members))

static uint64_t take_tag(rlr_exchange_t *exchange)
{
    exchange->tag = exchange->tag % RLR_MESSAGE_TAG_MAX + 1;
    return exchange->tag;
}

static void fill_item(rlr_exchange_t *exchange, rlr_message_item_t *item,
                      const rlr_pending_request_t *pending, uint64_t now_ms)
{
    rlr_lease_t *lease = rlr_lease_table_lock(exchange->shared, pending->key,
                                              pending->limit, now_ms);
    rlr_lease_t none;

    /* Without a slot only what is needed now. */
    rlr_lease_init(&none, pending->key, pending->limit);
    rlr_lease_request(item, lease != NULL ? lease : &none, pending->waiting,
                      take_tag(exchange), now_ms);
    if (lease != NULL) {
        rlr_lease_table_unlock(exchange->shared, lease);
    }
}

/* Moves pending requests of the partition from the list to the flight. */
static void take_pending_requests(rlr_exchange_t *exchange,
                                  rlr_flight_t *flight,
                                  rlr_pending_request_t **list)
{
    rlr_pending_request_t **at = list;
    uint32_t count = 0;

    flight->items = apr_pcalloc(
        flight->pool, RLR_CONNECTION_ITEMS_MAX * sizeof(*flight->items));
    while (*at != NULL && count < RLR_CONNECTION_ITEMS_MAX) {
        rlr_pending_request_t *pending = *at;

        /* A reset is a call of its own. */
        if (rlr_shared_partition_of(pending->key) != flight->partition
            || (count > 0
                && pending->is_reset
                    != flight->pending_requests[0]->is_reset)) {
            at = &pending->next;
            continue;
        }
        *at = pending->next;
        if (pending->is_reset) {
            flight->call.kind = RLR_MESSAGE_RESET;
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
    while (list != NULL && rlr_shared_partition_of(list->key) != partition) {
        list = list->next;
    }
    return list != NULL;
}

static bool is_due(const rlr_exchange_t *exchange, uint32_t partition,
                   const rlr_partition_state_t *state, uint64_t now_ms,
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

bool rlr_flight_fill_locked(rlr_exchange_t *exchange, rlr_flight_t *flight,
                            rlr_partition_state_t *state,
                            rlr_pending_request_t **list)
{
    uint64_t now_ms = rlr_clock_now().floor_ms;
    bool has_pending_requests = has_pending_request(*list, flight->partition);
    uint32_t bit = 1U << flight->partition;
    bool is_exclusive;
    rlr_message_kind_t kind = rlr_member_next(&state->member, &is_exclusive,
                                              now_ms);

    exchange->blocked &= ~bit;
    if (state->member.has_left || now_ms < state->next_call_ms) {
        exchange->blocked |= bit;
        return false;
    }
    if (!is_due(exchange, flight->partition, state, now_ms,
                has_pending_requests)) {
        return false;
    }
    rlr_member_fill(&flight->call, &state->member, &exchange->member, kind,
                    now_ms);
    flight->generation = state->member.generation;
    flight->sent_ms = now_ms;
    rlr_away_try(&exchange->away, flight->partition, now_ms);
    if (is_exclusive) {
        state->next_call_ms = now_ms + RLR_FLIGHT_EXCLUSIVE_MS;
    }
    if (kind == RLR_MESSAGE_HEARTBEAT) {
        state->heartbeat_sent_ms = now_ms;
        if (has_pending_requests && state->member.is_confirmed) {
            take_pending_requests(exchange, flight, list);
        }
    }
    return true;
}
