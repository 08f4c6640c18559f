/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of mod_ratelimit_regional/region/grant.lua in C, for the
 * simulation: one partition of one server. */
#ifndef REGION_STORE_H
#define REGION_STORE_H

#include "../../mod_ratelimit_regional/region/store.h"

typedef struct region_store_t region_store_t;

/* The server's replication id and the difference of its clock. */
region_store_t *region_store_make(uint32_t server, int64_t offset_ms);
void region_store_drop(region_store_t *store);

/* Removes all data. */
void region_store_empty(region_store_t *store);
/* The server starts again, or becomes the master, with its data. */
void region_store_restart(region_store_t *store, uint32_t server);

/* Executes a call at a time in microseconds; reply->grants has room for all
 * items. */
void region_store_call(region_store_t *store, uint64_t us,
                       const rlr_store_call_t *call, rlr_store_reply_t *reply);

/* Keys with a mark, and the marks. */
void region_store_size(const region_store_t *store, uint64_t *keys,
                       uint64_t *marks);

#endif
