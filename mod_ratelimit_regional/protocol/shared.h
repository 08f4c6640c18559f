/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's memberships and leases in shared memory: the members of 16
 * partitions, and slots for the leases of all keys (lease_table.h). Locks are
 * robust; the lock of a partition is taken before that of leases. A process may
 * die at any instruction: with the lock of a partition its host asks for its
 * number again and attests nothing; with that of leases one key counts as used
 * up.
 */
#ifndef RLR_SHARED_H
#define RLR_SHARED_H

#include <stddef.h>

#include "wait_slot.h"
#include "stats.h"
#include "lease.h"
#include "member.h"

#define RLR_SHARED_PARTITIONS   16U
#define RLR_SHARED_SECRET_BYTES 16

/* The mapped memory; private to protocol/. */
typedef struct rlr_shared_t {
    struct rlr_shared_memory_t *memory;
    struct rlr_lease_tags_t *tags;
    rlr_lease_t *leases;
    uint32_t sets;
    uint32_t generation;
    uint32_t table; /* the number of its table */
    uint64_t store; /* a hash of its address, M and S */
} rlr_shared_t;

/* A partition; its state may be used with its lock only. */
typedef struct rlr_partition_t rlr_partition_t;

/* Bytes for leases of at least so many keys. */
size_t rlr_shared_size(uint32_t keys);

/* Initializes zeroed memory of rlr_shared_size(keys) bytes, 64-byte aligned; id
 * and secret are random. False if the system has no robust mutexes. */
bool rlr_shared_create(rlr_shared_t *shared, void *memory, uint32_t keys,
                       const unsigned char *id, const unsigned char *secret);

/* Attaches another configuration to created memory of that size; false: another
 * release has created it, with another layout. */
bool rlr_shared_attach(rlr_shared_t *shared, void *memory, size_t size);

/* Records that another table counts the share of the host from now on; before a
 * process uses it. */
void rlr_shared_change_table(rlr_shared_t *shared);

/* Whether the table of this configuration is the latest; with the lock of a
 * partition. Processes with an earlier table have no share. */
bool rlr_shared_has_table(const rlr_shared_t *shared);

/* Makes the store with that hash the one of the host; before a process uses
 * it. */
void rlr_shared_use_store(rlr_shared_t *shared, uint64_t store);

/* Whether the host still uses the store of this configuration. If not, the
 * process sends no more calls: these would end the membership at the new store.
 */
bool rlr_shared_has_store(const rlr_shared_t *shared);

const unsigned char *rlr_shared_id(const rlr_shared_t *shared);

/* Actions once a minute: warnings of a subject, and publishing the rules. */
typedef enum rlr_shared_event_t {
    RLR_SHARED_AWAY,
    RLR_SHARED_REFUSED,
    RLR_SHARED_MISSING,
    RLR_SHARED_LATE,
    RLR_SHARED_RULES,
    RLR_SHARED_CLOCK,
    RLR_SHARED_EVENTS
} rlr_shared_event_t;

/* Whether it is due, in all processes together. The rules are due only in those
 * of the last configuration, and at once after a reload. */
bool rlr_shared_is_due(const rlr_shared_t *shared, rlr_shared_event_t event,
                       uint64_t now_ms);

/* Whether the start of the group at that time has not been logged. */
bool rlr_shared_is_new_start(const rlr_shared_t *shared, uint64_t at_ms);

/* The statistics of this host. */
rlr_stats_t *rlr_shared_stats(const rlr_shared_t *shared);

/* RLR_WAIT_SLOTS_MAX slots of all its processes. */
rlr_wait_slots_t rlr_shared_wait_slots(const rlr_shared_t *shared);

static inline uint32_t rlr_shared_partition_of(const unsigned char *key)
{
    return key[1] % RLR_SHARED_PARTITIONS;
}

/* The state of a partition that its lock guards. */
typedef struct rlr_partition_state_t {
    rlr_member_t member;
    uint64_t next_call_ms;       /* no other call is sent before this */
    uint64_t heartbeat_sent_ms;  /* when the last heartbeat was sent */
    rlr_message_status_t status; /* of the last reply */
    rlr_message_group_t group;   /* by the last heartbeat */
} rlr_partition_state_t;

/* Takes the lock; NULL: not within a second. */
rlr_partition_state_t *rlr_shared_lock(const rlr_shared_t *shared,
                                       uint32_t partition, uint64_t now_ms);
/* The same without waiting; NULL: it is not free. */
rlr_partition_state_t *rlr_shared_try_lock(const rlr_shared_t *shared,
                                           uint32_t partition, uint64_t now_ms);
/* Returns the state to a caller that holds the lock. */
rlr_partition_state_t *rlr_shared_get_locked(const rlr_shared_t *shared,
                                             uint32_t partition);
void rlr_shared_unlock(const rlr_shared_t *shared, uint32_t partition);

/* Records that a limit of that interval is in use. */
void rlr_shared_use_interval(const rlr_shared_t *shared, uint32_t interval_sec);

/* Until when an admission before now_ms may count, under any limit that has
 * been in use. */
uint64_t rlr_shared_counted_until(const rlr_shared_t *shared, uint64_t now_ms);

/* Records that a grant could not be stored, and until when its marks count. */
void rlr_shared_record_loss(const rlr_shared_t *shared, uint32_t partition,
                            uint64_t until_ms);

/* The state of the host in all partitions. */
typedef struct rlr_shared_summary_t {
    uint32_t members;   /* partitions that the host is a member of */
    uint32_t connected; /* of these, with a recent reply */
    uint32_t starting;  /* never connected to the store */
    bool is_refused;    /* the store has no number for it */
    rlr_message_group_t group;
    int64_t started_ms; /* the latest start; -1: none is known */
} rlr_shared_summary_t;

/* waits: waits for partitions that are locked, up to a second for each; else
 * skips them. */
void rlr_shared_sum_up(rlr_shared_summary_t *summary,
                       const rlr_shared_t *shared, bool waits, uint64_t now_ms);

#endif
