/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table: a window for each key of each row, a rule in a region, in a
 * segment of shared memory. Keys are found by a keyed 128-bit hash
 * (SipHash-2-4) and never stored.
 *
 * A live key is never evicted. The keys of one holder, the address that sends
 * them, get at most a sixteenth of the slots; a key without a slot is counted
 * together with the other such keys of its rule and holder, and if the table
 * has no slot for that counter either, in one of 16 overflow windows of the
 * rule.
 *
 * Known keys take no lock; new keys do. A process may die at any instruction:
 * no admission and no lock is lost. Nothing here allocates or includes httpd.
 */
#ifndef RLR_TABLE_H
#define RLR_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "window.h"

#define RLR_TABLE_SECRET_SIZE 16
#define RLR_TABLE_SLOTS_MIN   16U
#define RLR_TABLE_SLOTS_MAX   16777216U
#define RLR_TABLE_ROWS_MAX    1024U

typedef enum rlr_table_status_t {
    RLR_TABLE_OK,
    RLR_TABLE_TOO_SMALL, /* the memory is smaller than rlr_segment_size() */
    RLR_TABLE_INVALID,   /* not a segment of this layout, or bad arguments */
    RLR_TABLE_ROWS_FULL, /* create a larger segment and carry over */
    RLR_TABLE_SECRETS_DIFFER, /* carry-over from an unrelated segment */
    RLR_TABLE_LOCK_FAILED     /* the system has no robust shared mutexes */
} rlr_table_status_t;

/* A process's view of a segment: set by rlr_segment_attach(), read-only
 * afterwards, shared by threads and inherited by forked children. The caller
 * owns the struct; the members are private to counter/. */
typedef struct rlr_table_t {
    struct rlr_segment_t *segment;
    uint32_t sets;
    uint32_t rows;
    uint32_t generation;
    /* The parts of the segment, mapped in this process. */
    struct rlr_lock_t *locks;
    struct rlr_row_t *row_parts;
    struct rlr_counter_t *counters;
    struct rlr_slot_t *overflow;
    _Atomic uint64_t *shares;
    struct rlr_tags_t *tags;
    struct rlr_slot_t *slots;
} rlr_table_t;

typedef struct rlr_table_request_t {
    uint32_t row; /* from rlr_segment_attach() */
    /* Bytes that differ for different keys: parts of variable length need
     * their length before them. */
    const void *identity;
    size_t identity_length;
    /* Who sends the key: the client's address. NULL and 0: no holder, no
     * share. */
    const void *holder;
    size_t holder_length;
    rlr_limit_t limit; /* the rule's, or this key's own */
    bool dry_run;      /* counts a refusal as would_refuse */
    /* Without a slot of its own the key is refused, not counted with others. */
    bool needs_slot;
} rlr_table_request_t;

typedef struct rlr_table_decision_t {
    rlr_window_decision_t window;
    /* The key has no slot and was charged to a shared counter, or refused. */
    bool overflow;
    bool at_share; /* because the holder has its share of the slots */
    /* The first refusal by this window in an interval, to be logged. Never set
     * by rlr_table_peek(). */
    bool first_refusal;
} rlr_table_decision_t;

/* Requests one admission and counts the outcome. An invalid limit is refused
 * with a wait of one second. Any thread of any process. */
void rlr_table_admit(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_clock_t *clock, rlr_table_decision_t *decision);

/* Counts the outcome of a decision that was made elsewhere. */
void rlr_table_count(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_table_decision_t *decision);

/* Computes what rlr_table_admit() would decide, without charging or counting;
 * window.remaining does not count the request. `overflow`: the decision is
 * that of a shared counter. */
void rlr_table_peek(const rlr_table_t *table,
                    const rlr_table_request_t *request,
                    const rlr_clock_t *clock, rlr_table_decision_t *decision);

/* The type of rlr_table_admit() and rlr_table_peek(). */
typedef void rlr_table_decide_t(const rlr_table_t *table,
                                const rlr_table_request_t *request,
                                const rlr_clock_t *clock,
                                rlr_table_decision_t *decision);

/* Gives the key a slot of its own for an interval, unless it has one; nothing
 * is counted. False: its holder has its share of the slots, or none is free;
 * *decision is then a refusal. */
bool rlr_table_hold(const rlr_table_t *table,
                    const rlr_table_request_t *request,
                    const rlr_clock_t *clock, rlr_table_decision_t *decision);

/* Whether the key has a slot. No lock; request->limit is ignored. */
bool rlr_table_knows(const rlr_table_t *table,
                     const rlr_table_request_t *request);

/* Removes the key's admissions; true if it had a slot. Shared counters are
 * unchanged. */
bool rlr_table_reset(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_clock_t *clock);

#endif
