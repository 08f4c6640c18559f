/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of the segment of shared memory, and its locks. Private to
 * counter/.
 *
 * The segment has no pointers; all offsets follow from the counts in the
 * header. Each part is 64-byte aligned:
 *
 *    header      header.h, counts, secret, generation, repair
 *    locks       256 + 16 + 1 robust process-shared mutexes, see below
 *    rows        per row (a rule in a region) 24 bytes: the hash of its name,
 *                written by attach only, with which its keys are hashed; the
 *                time until which a shared counter of it may be in use
 *    counters    per row 16 lines of 64 bytes; a thread adds to the line of
 *                its processor; no lock
 *    overflow    per row 16 slots, by four bits of a hash
 *    shares      as many u64 as slots: how many slots the addresses hold whose
 *                hashes map to the u64; see share.h
 *    tags        per set 8 x u64, one cache line: first half of the hash,
 *                0 = free
 *    slots       per set 8 x 320 bytes: row, generation, time of the last
 *                log line, window (with the second half of the hash), holder
 *
 * Lock i guards the sets s with s % 256 == i: writes of tags and holders, and
 * the rebuilding of windows. The next 16 guard the rebuilding of overflow
 * windows. The last one is the lock of the repair (repair.h).
 *
 * Locks are taken in ascending order, which prevents deadlocks. A new key takes
 * the locks of its three sets, together with those of its shared counter's
 * three sets if it needs that counter, then one of the 16. A sweep holds one
 * lock at a time. The repair never waits for a lock. A carry-over takes locks
 * of the new segment while it holds one of the old segment, never the reverse.
 *
 * The slots of a set are its ways, as in a processor's cache. Five of the eight
 * are open to all keys, one to keys with short intervals, so that keys with
 * intervals of an hour cannot fill the table for an hour, one to shared
 * counters, and one to both of these.
 */
#ifndef RLR_LAYOUT_H
#define RLR_LAYOUT_H

#include <pthread.h>
#include <stdatomic.h>

#include "header.h"
#include "table.h"
#include "table_key.h"
#include "window_rebuild.h"

#define RLR_SET_LOCKS 256U
/* The locks of sets, those of overflow windows, and that of the repair. */
#define RLR_LOCKS (RLR_SET_LOCKS + RLR_OVERFLOW_WINDOWS + 1)
/* Counter lines per row. */
#define RLR_STRIPES 16U
/* The owner of overflow windows, and of slots without a key. */
#define RLR_OVERFLOW_OWNER 0U
/* An address may hold 1/RLR_SHARE of the slots. */
#define RLR_SHARE 16U
/* With fewer slots than this one of its keys is one of its first. */
#define RLR_SHARE_FIRST 8U
/* The ways that keys may claim, as bits: those for all keys; those in addition
 * for keys with short intervals, and for shared counters or, if a key has none,
 * the first keys of an address. */
#define RLR_WAYS_ALL    0x1fU
#define RLR_WAYS_SHORT  0x60U
#define RLR_WAYS_SHARED 0xa0U
/* The longest short interval. */
#define RLR_SHORT_SEC 60U

typedef struct rlr_segment_t {
    rlr_header_t header;
    uint32_t rows;
    uint32_t rows_used;
    /* Configurations attached so far; children of older ones compare it. */
    _Atomic uint32_t generation;
    _Atomic uint32_t repair; /* rlr_repair_phase_t of repair_state.h */
    unsigned char secret[RLR_TABLE_SECRET_SIZE];
    _Atomic uint32_t sweep_set; /* the set where the next sweep starts */
    /* Locks, counters or sets that this phase of the repair has finished;
     * guarded by the repair's lock. */
    uint32_t phase_done;
} rlr_segment_t;

typedef struct rlr_lock_t {
    _Alignas(64) pthread_mutex_t mutex;
    /* The number of its sets, from the lowest, that the repair has recounted;
     * guarded by the lock itself. */
    uint32_t recounted;
} rlr_lock_t;

typedef struct rlr_row_t {
    unsigned char key[16];
    _Atomic uint64_t shared_until_ms;
} rlr_row_t;

typedef struct rlr_counter_t {
    _Alignas(64) _Atomic uint64_t admitted;
    _Atomic uint64_t refused;
    _Atomic uint64_t would_refuse;
    _Atomic uint64_t overflow;
} rlr_counter_t;

typedef struct rlr_tags_t {
    _Alignas(64) _Atomic uint64_t tag[RLR_WAYS];
} rlr_tags_t;

typedef struct rlr_slot_t {
    _Alignas(64) _Atomic uint16_t row;
    _Atomic uint16_t generation;
    _Atomic uint32_t logged_ms; /* time of the last first_refusal, mod 2^32 */
    rlr_window_t window;
    _Atomic uint64_t holder; /* hash of the address that sent the key, or 0 */
} rlr_slot_t;

_Static_assert(sizeof(rlr_segment_t) == 64, "the header is one line");
_Static_assert(sizeof(rlr_lock_t) == 64, "a lock is one line");
_Static_assert(sizeof(rlr_tags_t) == 64, "a set's tags are one line");
_Static_assert(sizeof(rlr_slot_t) == 320, "a slot is five lines");

static inline rlr_slot_t *rlr_layout_slot(const rlr_table_t *table,
                                          uint32_t set, uint32_t way)
{
    return &table->slots[(size_t)set * RLR_WAYS + way];
}

static inline rlr_slot_t *rlr_layout_overflow_slot(const rlr_table_t *table,
                                                   uint32_t row,
                                                   uint32_t overflow)
{
    return &table->overflow[(size_t)row * RLR_OVERFLOW_WINDOWS + overflow];
}

/* The value of logged_ms with which the next refusal is the first. */
static inline uint32_t rlr_layout_unlogged(rlr_limit_t limit,
                                           const rlr_time_t *now)
{
    return (uint32_t)now->floor_ms - limit.interval_sec * 1000;
}

#endif
