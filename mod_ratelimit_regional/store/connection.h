/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of one thread to the store: to one server, to the primary that
 * Sentinel names, or to the nodes of a cluster. */
#ifndef RLR_CONNECTION_H
#define RLR_CONNECTION_H

#include <apr_pools.h>

#include "../protocol/message.h"
#include "address.h"

/* Items of one call: a script blocks the store. */
#define RLR_CONNECTION_ITEMS_MAX 64U

typedef struct rlr_connection_t rlr_connection_t;

/* A connection that is not open; closed with the pool. */
rlr_connection_t *rlr_connection_make(const rlr_connection_config_t *config,
                                      apr_pool_t *pool);

/* Opens the connection unless it is open; one that the store has closed since
 * its last call is opened again. Returns NULL, or the error, which is valid
 * until the next call. Blocks for about a second at most. */
const char *rlr_connection_open(rlr_connection_t *connection);

/* Whether partitions may be those of different servers, of which one may be
 * away. */
bool rlr_connection_has_nodes(const rlr_connection_t *connection);

/* Queues a call to a partition, or to RLR_ROUTE_RULES, which has none under
 * way; nothing is sent. Each call is received; the pool is used until then. */
void rlr_connection_add(rlr_connection_t *connection,
                        const rlr_message_call_t *call, uint32_t partition,
                        apr_pool_t *scratch);

/* Sends what is queued; receiving has the error. */
void rlr_connection_flush(rlr_connection_t *connection);

/* Reads the replies that have come; if there are none, waits for wait_ms. */
void rlr_connection_poll(rlr_connection_t *connection, int wait_ms);

/* Whether a reply, or an error, is there, so that to receive does not wait. */
bool rlr_connection_has_reply(const rlr_connection_t *connection,
                              uint32_t partition);

/* Ends a call without a reply: closes the connection to its server. */
void rlr_connection_expire(rlr_connection_t *connection, uint32_t partition);

/* Waits for the reply of the partition, for RLR_PERIOD_CALL_MS at most. Returns
 * NULL, or the error, with RLR_MESSAGE_FAILED in the reply; if the server did
 * not reply its connection is closed. */
const char *rlr_connection_receive(rlr_connection_t *connection,
                                   uint32_t partition,
                                   rlr_message_reply_t *reply,
                                   uint32_t item_count);

/* Whether there was no reply because the connection has ended, or the store has
 * lost the script: the call may be made again at once. */
bool rlr_connection_is_lost(const rlr_connection_t *connection,
                            uint32_t partition);

#endif
