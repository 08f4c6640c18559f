/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a segment and the locks, for table*.c only.
 *
 * The segment (no pointers in it; everything follows from the counts in the
 * header), each part on a 64-byte border:
 *
 *    header      magic, layout version, counts, secret, generation
 *    locks       256 + 16 + 1 robust process-shared mutexes, see below
 *    rules       per rule 24 bytes: hash of its name, which is also the key of
 *                its identities' hashes, written by attach only; until when
 *                something may count that was charged without a slot
 *    counters    per rule 16 lines of 64 bytes; who counts adds to the line of
 *                the processor it runs on; no lock
 *    overflow    per rule 16 slots, by four bits of a hash
 *    shares      per slot of the table a u64: how many slots the addresses hold
 *                whose hashes fall on it; see table_share.h
 *    tags        per set 8 x u64, one cache line: first half of the hash,
 *                0 = free
 *    slots       per set 8 x 320 bytes: rule, generation, window, whose owner
 *                is the second half of the hash, holder
 *
 * Lock i belongs to the sets s with s % 256 == i: to every write of a tag or
 * holder and every rebuild of a window in them. The next 16 belong to the
 * rebuilding of overflow windows. Locks are taken in rising order, so that no
 * two threads wait for each other: a new key takes those of its three sets, and
 * of the three of its address's counter if it needs that, then one of the 16; a
 * sweep takes one at a time, and begins while none is held. The last lock is
 * that of the repair (table_repair.h), which waits for no lock at all. Carrying
 * over holds one of the old segment while it takes the new one's, never the
 * other way round.
 *
 * Of the eight slots of a set five are for all keys, one is for keys of short
 * intervals, so that those of an hour cannot fill the table for an hour, one
 * for what nobody holds, the counters of addresses, and one for both.
 */
#ifndef RLR_TABLE_SEGMENT_H
#define RLR_TABLE_SEGMENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "table.h"
#include "table_key.h"
#include "window_rebuild.h"

#define RLR_TABLE_WAYS      8U
#define RLR_TABLE_SET_LOCKS 256U
/* Of sets, of overflow windows, of the repair. */
#define RLR_TABLE_LOCKS (RLR_TABLE_SET_LOCKS + RLR_TABLE_GROUPS + 1)
/* Counter lines of a rule. */
#define RLR_TABLE_STRIPES 16U
/* Overflow windows are nobody's own. */
#define RLR_TABLE_OVERFLOW_OWNER 0U
/* An address may hold one in so many slots. */
#define RLR_TABLE_SHARE 16U
/* Ways of a set, as bits, and the longest interval that is a short one. */
#define RLR_TABLE_WAYS_OF_ALL   0x1fU
#define RLR_TABLE_WAYS_OF_SHORT 0x60U
#define RLR_TABLE_WAYS_UNHELD   0xa0U
#define RLR_TABLE_SHORT_SEC     60U

/* Phases of a repair of the shares, in their order; see table_repair.h. */
typedef enum rlr_table_repair_t {
    RLR_TABLE_SOUND,
    RLR_TABLE_DAMAGED, /* a lock's owner died: shares may be too high */
    RLR_TABLE_UNCOUNT, /* no set is in the second sums yet */
    RLR_TABLE_CLEAR,   /* the second sums become 0 */
    RLR_TABLE_COUNT,   /* the sets are added to the second sums */
    RLR_TABLE_APPLY    /* the second sums take the place of the first */
} rlr_table_repair_t;

typedef struct rlr_table_segment_t {
    uint64_t magic; /* written last by create */
    uint32_t layout;
    uint32_t sets;
    uint32_t rules;
    uint32_t rules_used;
    /* Configurations attached so far. Children of older ones look at it. */
    _Atomic uint32_t generation;
    _Atomic uint32_t repair; /* rlr_table_repair_t */
    uint64_t size;
    unsigned char secret[RLR_TABLE_SECRET_SIZE];
    _Atomic uint32_t hand; /* the set where the next sweep begins */
    uint32_t repaired; /* of this phase so far; the repair's lock guards it */
} rlr_table_segment_t;

typedef struct rlr_table_lock_t {
    _Alignas(64) pthread_mutex_t mutex;
    /* The first so many of its sets are in the second sums of a repair; guarded
     * by the lock itself. */
    uint32_t counted;
} rlr_table_lock_t;

typedef struct rlr_table_rule_t {
    unsigned char key[16];
    _Atomic uint64_t shared_until_ms;
} rlr_table_rule_t;

typedef struct rlr_table_counter_t {
    _Alignas(64) _Atomic uint64_t allowed;
    _Atomic uint64_t refused;
    _Atomic uint64_t would_refuse;
    _Atomic uint64_t overflow;
} rlr_table_counter_t;

typedef struct rlr_table_tags_t {
    _Alignas(64) _Atomic uint64_t tag[RLR_TABLE_WAYS];
} rlr_table_tags_t;

typedef struct rlr_table_slot_t {
    _Alignas(64) _Atomic uint16_t rule;
    _Atomic uint16_t generation;
    _Atomic uint32_t noticed; /* time of the last first_refusal, ms mod 2^32 */
    rlr_window_t window;
    _Atomic uint64_t
        holder; /* hash of the address that brought the key, or 0 */
} rlr_table_slot_t;

_Static_assert(sizeof(rlr_table_segment_t) == 64, "the header is one line");
_Static_assert(sizeof(rlr_table_lock_t) == 64, "a lock is one line");
_Static_assert(sizeof(rlr_table_tags_t) == 64, "a set's tags are one line");
_Static_assert(sizeof(rlr_table_slot_t) == 320, "a slot is five lines");

static inline rlr_table_slot_t *rlr_table_slot(const rlr_table_t *table,
                                               uint32_t set, uint32_t way)
{
    return &table->slots[(size_t)set * RLR_TABLE_WAYS + way];
}

static inline rlr_table_slot_t *rlr_table_overflow_slot(
    const rlr_table_t *table, uint32_t rule, uint32_t group)
{
    return &table->overflow[(size_t)rule * RLR_TABLE_GROUPS + group];
}

/* The value of `noticed` with which the next refusal is the first. */
static inline uint32_t rlr_table_unnoticed(rlr_limit_t limit,
                                           const rlr_time_t *now)
{
    return (uint32_t)now->floor_ms - limit.interval_sec * 1000;
}

#endif
