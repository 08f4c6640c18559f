/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a child that talks to the store. */
#ifndef RLR_WORKER_H
#define RLR_WORKER_H

#include <httpd.h>

#include "store.h"

/* Makes store->queue and starts the thread, which ends with the pool. Logs
 * errors; without the thread the store counts as away. */
void rlr_worker_start(rlr_store_t *store, server_rec *server, apr_pool_t *pool);

/* Leaves the store when httpd ends, and with it pconf; not at a restart. Logs
 * the outcome. */
void rlr_worker_leave_at_end(rlr_store_t *store, server_rec *server,
                             apr_pool_t *pconf);

#endif
