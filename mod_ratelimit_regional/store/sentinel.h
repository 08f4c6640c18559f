/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks Sentinels for the primary, all the time and without waiting: a server is
 * the primary as long as more than half of the Sentinels of the address have
 * said so in the last seconds. So a host that a partition leaves with the
 * former primary stops using it, whatever that one answers.
 */
#ifndef RLR_SENTINEL_H
#define RLR_SENTINEL_H

#include "node.h"

typedef struct rlr_sentinel_t rlr_sentinel_t;

/* Connections to the Sentinels of the address, not open; closed with the
 * pool. */
rlr_sentinel_t *rlr_sentinel_make(const rlr_connection_config_t *config,
                                  apr_pool_t *pool);

/* Sends queries that are due, and takes replies. Sets *primary and
 * returns NULL, or an error, valid until the next call. While no primary is
 * known it waits for half a second at most. */
const char *rlr_sentinel_find(rlr_sentinel_t *sentinel,
                              rlr_server_address_t *primary);

#endif
