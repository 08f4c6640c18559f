/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of one thread to the store, by hiredis. */
#ifndef RLR_CONNECTION_H
#define RLR_CONNECTION_H

#include <apr_pools.h>

#include "address.h"
#include "wire.h"

typedef struct rlr_connection_config_t {
    rlr_address_t address;
    const char *password; /* or NULL */
} rlr_connection_config_t;

typedef struct rlr_store_connection_t rlr_store_connection_t;

/* A connection that is not open; closed with the pool. */
rlr_store_connection_t *rlr_connection_make(
    const rlr_connection_config_t *config, apr_pool_t *pool);

/* Opens it if it is not open. Returns NULL, or the error, which is valid until
 * the next call. Blocks for about a second at most. */
const char *rlr_connection_open(rlr_store_connection_t *connection);
void rlr_connection_close(rlr_store_connection_t *connection);

/* Queues a call to a partition; nothing is sent. */
void rlr_connection_add(rlr_store_connection_t *connection,
                        const rlr_store_call_t *call, uint32_t partition,
                        apr_pool_t *scratch);

/* Sends what is queued. Returns NULL or the error; the connection is then
 * closed. */
const char *rlr_connection_flush(rlr_store_connection_t *connection);

/* Waits for the next reply, for RLR_PERIOD_CALL_MS at most. Returns NULL, or
 * the error, with RLR_STORE_FAILED in the reply; if the store did not reply the
 * connection is closed. */
const char *rlr_connection_receive(rlr_store_connection_t *connection,
                                   rlr_store_reply_t *reply,
                                   uint32_t item_count);

#endif
