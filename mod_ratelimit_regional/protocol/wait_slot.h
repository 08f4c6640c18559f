/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots for threads that wait for the store, in the memory of a process or of
 * all processes of a host. A slot becomes free at a time that is set when it is
 * taken, also if the process has died. No locks.
 *
 * A brief wait for a store that is not slow needs none.
 */
#ifndef RLR_WAIT_SLOT_H
#define RLR_WAIT_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Slots of all processes of a host. */
#define RLR_WAIT_SLOTS_MAX 1024U

typedef struct rlr_wait_slot_t {
    _Atomic uint64_t holder; /* until when, and a hash of the client; 0: none */
} rlr_wait_slot_t;

/* The last waits, with a slot or brief. */
#define RLR_WAIT_RECENT 128U

typedef struct rlr_wait_recent_t {
    _Atomic uint32_t next;
    _Atomic uint64_t slow_until_ms; /* until when the store counts as slow */
    _Atomic uint64_t reserved; /* until when half is, and for which client */
    /* When each began, and a hash of the client; 0: none. */
    _Atomic uint64_t waits[RLR_WAIT_RECENT];
} rlr_wait_recent_t;

typedef struct rlr_wait_slots_t {
    rlr_wait_slot_t *all;
    uint32_t count;
    rlr_wait_recent_t *recent;
} rlr_wait_slots_t;

/* A slot that is held; NULL: none. */
typedef struct rlr_wait_slot_hold_t {
    rlr_wait_slot_t *slot;
    uint64_t holder;
} rlr_wait_slot_hold_t;

/* Takes a slot until until_ms for a client, of which `client` is a hash; false:
 * it has as many as are free, all are taken, or the free ones are reserved for
 * less frequent clients. */
bool rlr_wait_slot_take(rlr_wait_slot_hold_t *hold,
                        const rlr_wait_slots_t *slots, uint32_t client,
                        uint64_t now_ms, uint64_t until_ms);
void rlr_wait_slot_return(const rlr_wait_slot_hold_t *hold);

/* Whether a client may wait without a slot, which must be a brief wait for a
 * store that is not slow; if so, counts it. */
bool rlr_wait_slot_may_be_brief(const rlr_wait_slots_t *slots, uint32_t client,
                                uint64_t now_ms);

/* Whether the store answered late within the last second; an answer in time
 * ends that. */
bool rlr_wait_slot_is_slow(const rlr_wait_slots_t *slots, uint64_t now_ms);
void rlr_wait_slot_set_slow(const rlr_wait_slots_t *slots, bool is_slow,
                            uint64_t now_ms);

#endif
