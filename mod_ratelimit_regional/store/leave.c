/* SPDX-License-Identifier: Apache-2.0 */
/* One partition after the other: returns the unused parts of leases, and then
 * the number. */
#include "leave.h"

#include <apr_strings.h>

#include "../counter/clock.h"
#include "../protocol/lease_table.h"
#include "connection.h"
#include "publish.h"

/* httpd must end. Leases that are not returned expire, and a share that is not
 * is reserved. */
#define LEASES_MS 1000U
#define ALL_MS    2000U

static const char no_member[] =
    "its data are lost, or the host is not a member";

typedef struct leaving_t {
    const rlr_store_t *store;
    rlr_connection_t *connection;
    uint64_t leases_until_ms;
    uint32_t partition;
    rlr_member_t member;        /* the partition's */
    rlr_member_config_t config; /* with which it is one */
    apr_pool_t *scratch;
} leaving_t;

/* Sends a call and takes the reply; *is_taken: the store has executed it. */
static const char *send_call(leaving_t *leaving, bool *is_taken,
                             rlr_message_kind_t kind, uint32_t flags,
                             const rlr_message_item_t *items, uint32_t count)
{
    uint64_t now_ms = rlr_clock_now().floor_ms;
    rlr_message_grant_t grants[RLR_CONNECTION_ITEMS_MAX];
    rlr_message_reply_t reply = {.grants = grants};
    rlr_message_call_t call;
    const char *error;

    rlr_member_fill(&call, &leaving->member, &leaving->config, kind, now_ms);
    call.flags |= flags;
    call.items = items;
    call.item_count = count;
    apr_pool_clear(leaving->scratch);
    rlr_connection_add(leaving->connection, &call, leaving->partition,
                       leaving->scratch);
    rlr_connection_flush(leaving->connection);
    error = rlr_connection_receive(leaving->connection, leaving->partition,
                                   &reply, count);
    *is_taken = error == NULL && reply.status == RLR_MESSAGE_OK;
    if (error == NULL) {
        rlr_member_answer(&leaving->member, &call, &reply,
                          leaving->member.generation, now_ms,
                          rlr_clock_now().ceil_ms);
    }
    return error;
}

/* Whether the host may send heartbeats to its epoch. */
static bool is_in_heartbeat(const leaving_t *leaving)
{
    bool is_exclusive;

    return rlr_member_next(&leaving->member, &is_exclusive,
                           rlr_clock_now().floor_ms)
        == RLR_MESSAGE_HEARTBEAT
        && leaving->member.is_confirmed;
}

static const char *leave_partition(leaving_t *leaving, bool *has_left)
{
    rlr_message_item_t items[RLR_CONNECTION_ITEMS_MAX];
    uint32_t cursor = 0;
    uint32_t count = 0;
    const char *error = rlr_connection_open(leaving->connection);

    if (error == NULL && !is_in_heartbeat(leaving)) {
        error = send_call(leaving, has_left, RLR_MESSAGE_HELLO,
                          RLR_MESSAGE_LEAVE, NULL, 0);
        *has_left = false;
    }
    if (error == NULL && !is_in_heartbeat(leaving)) {
        return no_member;
    }
    do {
        count = rlr_lease_table_close(
            items, RLR_CONNECTION_ITEMS_MAX, &cursor, &leaving->store->shared,
            leaving->partition, rlr_clock_now().ceil_ms);
        if (error == NULL && count > 0) {
            error = send_call(leaving, has_left, RLR_MESSAGE_HEARTBEAT,
                              RLR_MESSAGE_LEAVE, items, count);
        }
    } while (error == NULL && count > 0
             && rlr_clock_now().floor_ms < leaving->leases_until_ms);
    if (error == NULL) {
        error = send_call(leaving, has_left, RLR_MESSAGE_HEARTBEAT,
                          RLR_MESSAGE_LEAVE, NULL, 0);
    }
    return error != NULL || *has_left ? error : no_member;
}

/* Ends the membership for all processes; false: there is none. */
static bool take_member(leaving_t *leaving)
{
    const rlr_shared_t *shared = &leaving->store->shared;
    rlr_partition_state_t *state = rlr_shared_lock(shared, leaving->partition,
                                                   rlr_clock_now().floor_ms);

    if (state == NULL) {
        return false;
    }
    rlr_member_leave(&state->member, &leaving->member);
    rlr_shared_unlock(shared, leaving->partition);
    leaving->config = leaving->store->member;
    /* A reload may have changed them since: the store knows the host by those
     * of its last heartbeat. */
    if (leaving->member.number != RLR_MESSAGE_NO_NUMBER) {
        leaving->config.members = leaving->member.members;
        leaving->config.share_ms = leaving->member.share_ms;
    }
    return leaving->member.was_member;
}

uint32_t rlr_leave_run(uint32_t *left, const char **error,
                       const rlr_store_t *store, apr_pool_t *pool)
{
    uint64_t start_ms = rlr_clock_now().floor_ms;
    leaving_t leaving = {.store = store,
                         .leases_until_ms = start_ms + LEASES_MS};
    uint32_t members = 0;

    *left = 0;
    *error = NULL;
    apr_pool_create(&leaving.scratch, pool);
    leaving.connection = rlr_connection_make(&store->config->connection, pool);
    for (uint32_t i = 0; i < RLR_SHARED_PARTITIONS; i++) {
        const char *problem = "no time is left";
        bool has_left = false;

        leaving.partition = i;
        if (!take_member(&leaving)) {
            continue;
        }
        members++;
        /* After an error too: other nodes of a cluster have other partitions,
         * and one that cannot be opened is not waited for twice. */
        if (rlr_clock_now().floor_ms < start_ms + ALL_MS) {
            problem = leave_partition(&leaving, &has_left);
        }
        *left += has_left;
        if (has_left && i == RLR_PUBLISH_PARTITION) {
            rlr_publish_remove(leaving.connection, leaving.member.number,
                               leaving.scratch);
        }
        if (problem != NULL && *error == NULL) {
            *error = apr_pstrdup(pool, problem);
        }
    }
    return members;
}
