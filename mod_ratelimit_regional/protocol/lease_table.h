/* SPDX-License-Identifier: Apache-2.0 */
/* The leases of a host, by key: finding, claiming and listing them. */
#ifndef RLR_LEASE_TABLE_H
#define RLR_LEASE_TABLE_H

#include "shared.h"

/*
 * Takes the lock of the key's lease; makes the lease if there is none. NULL:
 * all slots are in use, or the lock is not free within a second. The caller
 * holds no lock of a lease.
 */
rlr_lease_t *rlr_lease_table_lock(const rlr_shared_t *shared,
                                  const unsigned char *key, rlr_limit_t limit,
                                  uint64_t now_ms);
void rlr_lease_table_unlock(const rlr_shared_t *shared,
                            const rlr_lease_t *lease);

/* Whether this thread may request more of the key for all: no other one has in
 * the last moments. The lease's lock is held. */
bool rlr_lease_table_may_request(rlr_lease_t *lease, uint64_t now_ms);

/* Fills out with up to `room` marks of the partition, from *cursor on, which is
 * 0 at first and advanced; returns their number, 0 at the end. room is at least
 * 8 * RLR_LEASE_MARKS. */
uint32_t rlr_lease_table_report(rlr_message_mark_t *out, uint32_t room,
                                uint32_t *cursor, const rlr_shared_t *shared,
                                uint32_t partition, uint64_t now_ms);

/* Ends the leases of the partition and fills out with what to return, in the
 * same way: from *cursor on; room is at least 8 * RLR_LEASE_CLOSINGS. */
uint32_t rlr_lease_table_close(rlr_message_item_t *out, uint32_t room,
                               uint32_t *cursor, const rlr_shared_t *shared,
                               uint32_t partition, uint64_t now_ms);

/* Leases that may be used now, and slots. */
typedef struct rlr_lease_table_count_t {
    uint32_t keys;
    uint64_t unused; /* admissions of all of them */
    uint32_t live;   /* keys with admissions of this host that count */
    uint32_t slots;
} rlr_lease_table_count_t;

void rlr_lease_table_count(rlr_lease_table_count_t *count,
                           const rlr_shared_t *shared, uint64_t now_ms);

#endif
