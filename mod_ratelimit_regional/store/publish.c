/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps rules by the numbers that hosts have in partition 0. No decision
 * depends on them, so that an epoch does not matter. */
#include "publish.h"

#include "../counter/clock.h"
#include "route.h"

static const char *send_call(rlr_connection_t *connection,
                             const rlr_message_call_t *call,
                             rlr_message_reply_t *reply, apr_pool_t *pool)
{
    rlr_connection_add(connection, call, RLR_ROUTE_RULES, pool);
    rlr_connection_flush(connection);
    return rlr_connection_receive(connection, RLR_ROUTE_RULES, reply, 0);
}

/* The host's number; none while it is not connected. */
static int get_number(const rlr_shared_t *shared, uint64_t now_ms)
{
    rlr_partition_state_t *state = rlr_shared_lock(
        shared, RLR_PUBLISH_PARTITION, now_ms);
    int number = RLR_MESSAGE_NO_NUMBER;

    if (state != NULL) {
        if (state->member.is_confirmed
            && now_ms < state->member.heartbeat_until_ms) {
            number = state->member.number;
        }
        rlr_shared_unlock(shared, RLR_PUBLISH_PARTITION);
    }
    return number;
}

void rlr_publish_send(rlr_connection_t *connection, const rlr_store_t *store,
                      apr_pool_t *scratch)
{
    rlr_message_call_t call = {.kind = RLR_MESSAGE_PUBLISH,
                               .name = store->member.name,
                               .rules = store->host.rules};
    rlr_message_reply_t reply = {0};
    rlr_time_t now = rlr_clock_now();

    call.number = get_number(&store->shared, now.ceil_ms);
    if (call.number != RLR_MESSAGE_NO_NUMBER
        && rlr_shared_is_due(&store->shared, RLR_SHARED_RULES, now.floor_ms)) {
        send_call(connection, &call, &reply, scratch);
    }
}

void rlr_publish_remove(rlr_connection_t *connection, int number,
                        apr_pool_t *scratch)
{
    rlr_message_call_t call = {
        .kind = RLR_MESSAGE_PUBLISH, .number = number, .rules = ""};
    rlr_message_reply_t reply = {0};

    send_call(connection, &call, &reply, scratch);
}

const char *rlr_publish_read(rlr_message_rules_t *rules,
                             rlr_connection_t *connection, int number,
                             apr_pool_t *pool)
{
    rlr_message_call_t call = {.kind = RLR_MESSAGE_READ, .number = number};
    rlr_message_reply_t reply = {.rules = rules};
    const char *error = send_call(connection, &call, &reply, pool);

    return error == NULL && reply.status != RLR_MESSAGE_OK
        ? "a reply that cannot be read"
        : error;
}
