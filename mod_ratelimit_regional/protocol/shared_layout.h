/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * The layout of what a host shares. Private to protocol/. It has no
 * pointers; each part is 64-byte aligned:
 *
 *    fixed       header.h, id, secret, statistics, times of log lines, slots of
 *                waiting threads
 *    partitions  per partition a robust mutex and the membership
 *    stripes     256 robust mutexes of leases, and the lease in use with each
 *    tags        per set 8 x u64, one cache line: 59 bits of the key's hash, and
 *                its partition in the lowest four; 0 = free
 *    leases      per set 8 x 224 bytes
 *
 * A key's stripe and its sets, which are all of this stripe, follow from a
 * keyed hash: no client can choose keys that share sets. The leases of all
 * partitions are together: an address may hold a sixteenth of the table, and no
 * client fills with this the leases of one partition.
 */
/* clang-format on */
#ifndef RLR_SHARED_LAYOUT_H
#define RLR_SHARED_LAYOUT_H

#include <pthread.h>
#include <stdatomic.h>

#include "../counter/choice.h"
#include "../counter/header.h"
#include "shared.h"

#define RLR_SHARED_STRIPES 256U

struct rlr_partition_t {
    _Alignas(64) pthread_mutex_t mutex;
    rlr_partition_state_t state;
    _Atomic uint64_t lost_until_ms;
    /* Those of the memory that the state takes account of. */
    uint32_t tables;
};

typedef struct rlr_stripe_t {
    _Alignas(64) pthread_mutex_t mutex;
    /* The index of the lease that the owner may write, and 1; 0: none. */
    _Atomic uint32_t used;
} rlr_stripe_t;

struct rlr_lease_tags_t {
    _Alignas(64) _Atomic uint64_t tag[RLR_WAYS];
};

struct rlr_shared_memory_t {
    rlr_header_t header;
    unsigned char id[RLR_MESSAGE_ID_BYTES];
    unsigned char secret[RLR_SHARED_SECRET_BYTES];
    _Atomic uint32_t longest_sec; /* interval of all leases */
    /* Configurations that have attached it. */
    _Atomic uint32_t generation;
    _Atomic uint32_t tables; /* that have taken the place of another one */
    _Atomic uint64_t store;  /* of the last configuration that has one */
    _Atomic uint64_t last_ms[RLR_SHARED_EVENTS];
    _Atomic uint64_t started_ms; /* the last start that was logged */
    rlr_stats_t stats;
    rlr_wait_slot_t wait_slots[RLR_WAIT_SLOTS_MAX];
    rlr_wait_recent_t wait_recent;
    rlr_partition_t partitions[RLR_SHARED_PARTITIONS];
    rlr_stripe_t stripes[RLR_SHARED_STRIPES];
};

_Static_assert(sizeof(rlr_stripe_t) == 64, "a lock is one line");
_Static_assert(sizeof(struct rlr_lease_tags_t) == 64,
               "a set's tags are one line");
_Static_assert(sizeof(rlr_lease_t) == 224, "the size of the picture above");

static inline rlr_partition_t *rlr_shared_layout_partition(
    const rlr_shared_t *shared, uint32_t i)
{
    return &shared->memory->partitions[i];
}

#endif
