/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's memberships and leases in shared memory: 16 partitions, each with a
 * member and slots for the leases of its keys. Locks are robust; the lock of a
 * partition is taken before that of leases. A process may die at any
 * instruction: its host then asks for its number again and reports nothing.
 */
#ifndef RLR_LEDGER_H
#define RLR_LEDGER_H

#include <stddef.h>

#include "wait_slot.h"
#include "stats.h"
#include "lease.h"
#include "member.h"

#define RLR_LEDGER_PARTITIONS 16U

typedef struct rlr_ledger_t {
    struct rlr_ledger_memory_t *memory;
} rlr_ledger_t;

/* A partition; its member may be used with its lock only. */
typedef struct rlr_partition_t rlr_partition_t;

/* Bytes for leases of at least so many keys. */
size_t rlr_ledger_size(uint32_t keys);

/* Initializes zeroed memory of rlr_ledger_size(keys) bytes; false if the system
 * has no robust mutexes. */
bool rlr_ledger_create(rlr_ledger_t *ledger, void *memory, uint32_t keys,
                       const unsigned char *id);

/* Uses memory that another call has created. */
void rlr_ledger_attach(rlr_ledger_t *ledger, void *memory);

const unsigned char *rlr_ledger_id(const rlr_ledger_t *ledger);

typedef enum rlr_ledger_warning_t {
    RLR_LEDGER_AWAY,
    RLR_LEDGER_REFUSED,
    RLR_LEDGER_ABSENT,
    RLR_LEDGER_LATE,
    RLR_LEDGER_RULES,
    RLR_LEDGER_WARNINGS
} rlr_ledger_warning_t;

/* Whether a warning, or to send the rules, is due: once a minute. */
bool rlr_ledger_warns(const rlr_ledger_t *ledger, rlr_ledger_warning_t warning,
                      uint64_t now_ms);

/* Whether the start of the group at that time has not been logged. */
bool rlr_ledger_is_new_start(const rlr_ledger_t *ledger, uint64_t at_ms);

/* The numbers of this host. */
rlr_stats_t *rlr_ledger_stats(const rlr_ledger_t *ledger);

/* RLR_WAIT_SLOTS_MAX slots of all its processes. */
rlr_wait_slot_t *rlr_ledger_wait_slots(const rlr_ledger_t *ledger);

static inline uint32_t rlr_ledger_partition_of(const unsigned char *key)
{
    return key[1] % RLR_LEDGER_PARTITIONS;
}

/* The state of a partition that its lock guards. */
typedef struct rlr_ledger_state_t {
    rlr_member_t member;
    uint64_t alone_until_ms;    /* until when no other call may be sent */
    uint64_t heartbeat_sent_ms; /* when the last heartbeat was sent */
    rlr_store_status_t status;  /* of the last reply */
    rlr_store_absent_t absent;  /* by the last heartbeat */
} rlr_ledger_state_t;

/* Takes the lock; NULL: not within a second. */
rlr_ledger_state_t *rlr_ledger_lock(const rlr_ledger_t *ledger,
                                    uint32_t partition, uint64_t now_ms);
void rlr_ledger_unlock(const rlr_ledger_t *ledger, uint32_t partition);

/*
 * Takes the lock of the key's lease; makes the lease if there is none. NULL:
 * all slots are in use, or the lock is not free within a second.
 */
rlr_lease_t *rlr_ledger_lock_lease(const rlr_ledger_t *ledger,
                                   const unsigned char *key, rlr_limit_t limit,
                                   uint64_t now_ms);
void rlr_ledger_unlock_lease(const rlr_ledger_t *ledger,
                             const unsigned char *key);

/* A grant could not be kept: its marks count until then. */
void rlr_ledger_lose(const rlr_ledger_t *ledger, uint32_t partition,
                     uint64_t until_ms);

/* Whether this thread may request more of the key for all: no other one has in
 * the last moments. The lease's lock is held. */
bool rlr_ledger_may_request(rlr_lease_t *lease, uint64_t now_ms);

/* Fills out with up to `room` marks of the partition, from *cursor on, which is
 * 0 at first and advanced; returns their number, 0 at the end. room is at least
 * 8 * RLR_LEASE_MARKS. */
uint32_t rlr_ledger_report(rlr_store_mark_t *out, uint32_t room,
                           uint32_t *cursor, const rlr_ledger_t *ledger,
                           uint32_t partition, uint64_t now_ms);

/* The worst of all partitions. */
typedef struct rlr_ledger_summary_t {
    uint32_t members;   /* partitions that the host is a member of */
    uint32_t connected; /* of these, with an answer of late */
    uint32_t starting;  /* never connected to the store */
    bool is_refused;    /* the store has no number for it */
    rlr_store_absent_t absent;
    int64_t started_ms; /* the latest start; -1: none is known */
} rlr_ledger_summary_t;

void rlr_ledger_sum_up(rlr_ledger_summary_t *summary,
                       const rlr_ledger_t *ledger, uint64_t now_ms);

/* Leases that may be used now, and slots. */
typedef struct rlr_ledger_leases_t {
    uint32_t keys;
    uint64_t left; /* admissions of all of them */
    uint32_t live; /* keys with admissions of this host that count */
    uint32_t slots;
} rlr_ledger_leases_t;

void rlr_ledger_count_leases(rlr_ledger_leases_t *leases,
                             const rlr_ledger_t *ledger, uint64_t now_ms);

/* Ends the leases of the partition and fills out with what to return, in the
 * same way: from *cursor on; room is at least 8 * RLR_LEASE_CLOSINGS. */
uint32_t rlr_ledger_close(rlr_store_item_t *out, uint32_t room,
                          uint32_t *cursor, const rlr_ledger_t *ledger,
                          uint32_t partition, uint64_t now_ms);

#endif
