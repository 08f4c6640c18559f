/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of mod_ratelimit_regional/protocol/grant.lua in C, for the
 * simulation: one partition of one server. */
#ifndef GROUP_STORE_H
#define GROUP_STORE_H

#include "../../mod_ratelimit_regional/protocol/message.h"

typedef struct group_store_t group_store_t;

/* The server's replication id and the difference of its clock. */
group_store_t *group_store_make(uint32_t server, int64_t offset_ms);
void group_store_drop(group_store_t *store);

/* Removes all data. */
void group_store_empty(group_store_t *store);
/* The server starts again, or becomes the master, with its data. */
void group_store_restart(group_store_t *store, uint32_t server);

/* How much faster the clock is than time; set before the first call. */
void group_store_set_rate(group_store_t *store, double rate);
/* Sets the clock, forward or back. */
void group_store_set_clock(group_store_t *store, int64_t by_ms);

/* Executes a call at a time in microseconds; reply->grants has room for all
 * items. */
void group_store_call(group_store_t *store, uint64_t us,
                      const rlr_message_call_t *call,
                      rlr_message_reply_t *reply);

/* Keys with a mark, and the marks. */
void group_store_size(const group_store_t *store, uint64_t *keys,
                      uint64_t *marks);

#endif
