/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the leases and the share of a host that stops back to the store. */
#ifndef RLR_LEAVE_H
#define RLR_LEAVE_H

#include "store.h"

/*
 * Leaves the store; call it after the last request of the host, which then
 * admits nothing. Returns the number of partitions that the host was a member
 * of; *left is that of those that it has left, and *error, in pool, why others
 * could not be, or NULL. Blocks for about three seconds at most.
 */
uint32_t rlr_leave_run(uint32_t *left, const char **error,
                       const rlr_store_t *store, apr_pool_t *pool);

#endif
