/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of each host, kept by the store for operators, who compare them. */
#ifndef RLR_PUBLISH_H
#define RLR_PUBLISH_H

#include "connection.h"
#include "store.h"

/* The store keeps the rules of a host by its number in this partition. */
#define RLR_PUBLISH_PARTITION 0U

/* Sends the rules of this host if it is a member and none of its processes has
 * in the last minute. The connection has no call under way. Ignores errors: the
 * next call of a partition reports them. */
void rlr_publish_send(rlr_connection_t *connection, const rlr_store_t *store,
                      apr_pool_t *scratch);

/* Removes the rules of a host that leaves, from an open connection. */
void rlr_publish_remove(rlr_connection_t *connection, int number,
                        apr_pool_t *scratch);

/* Reads the rules of the host with the number from an open connection. Returns
 * NULL, or the error, as rlr_connection_receive(). */
const char *rlr_publish_read(rlr_message_rules_t *rules,
                             rlr_connection_t *connection, int number,
                             apr_pool_t *pool);

#endif
