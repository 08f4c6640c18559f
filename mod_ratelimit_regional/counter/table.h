/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table: a window for each key of each rule, in shared memory of fixed
 * size that the caller provides. Keys are found by a keyed 128-bit hash
 * (SipHash-2-4); the keys themselves are never stored. A key that still counts
 * is never evicted. Nobody's keys take more than a sixteenth of the slots; a
 * key that gets none is counted together with all others of its rule and its
 * holder, the address that brought it, and if the table has no slot for this
 * counter either, in one of 16 overflow windows of the rule. Decisions take no
 * lock; a new key does. Nothing here allocates or knows about httpd.
 *
 * table_segment.h has the layout, table_share.h how many slots an address
 * holds, table_repair.h what a death leaves to do, table_walk.h the counters.
 *
 * Death of a process at any instruction loses no admission and no lock.
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
#define RLR_TABLE_RULES_MAX   1024U

typedef enum rlr_table_status_t {
    RLR_TABLE_OK,
    RLR_TABLE_TOO_SMALL,  /* the memory is smaller than rlr_table_size() */
    RLR_TABLE_INVALID,    /* not a segment of this layout, or bad arguments */
    RLR_TABLE_RULES_FULL, /* create a bigger segment and carry over */
    RLR_TABLE_SECRETS_DIFFER, /* carry-over between unrelated segments */
    RLR_TABLE_LOCK_FAILED     /* the system has no robust shared mutexes */
} rlr_table_status_t;

/*
 * One process's view of a segment: filled by rlr_table_attach(), read-only
 * afterwards, so that threads share it and forked children inherit it. The
 * caller owns the struct; the members are for table*.c only.
 */
typedef struct rlr_table_t {
    struct rlr_table_segment_t *segment;
    uint32_t sets;
    uint32_t rules;
    uint32_t generation;
    /* Where the parts begin, in this process. */
    struct rlr_table_lock_t *locks;
    struct rlr_table_rule_t *rule_parts;
    struct rlr_table_counter_t *counters;
    struct rlr_table_slot_t *overflow;
    _Atomic uint64_t *shares;
    struct rlr_table_tags_t *tags;
    struct rlr_table_slot_t *slots;
} rlr_table_t;

typedef struct rlr_table_request_t {
    uint32_t rule; /* a rule slot, as rlr_table_attach() gave it */
    /* Bytes that differ for different identities: put lengths before parts. */
    const void *identity;
    size_t identity_length;
    /* Who brings the key: its address. NULL and 0: nobody, without bound. */
    const void *holder;
    size_t holder_length;
    rlr_limit_t limit; /* the rule's, or this key's own */
    bool dry_run;      /* counts a refusal as would_refuse */
} rlr_table_request_t;

typedef struct rlr_table_answer_t {
    rlr_decision_t decision;
    /* The key had no slot and was charged to a counter that it shares. */
    bool overflow;
    bool at_share; /* the reason: the holder has its share of the slots */
    /* Refused, and the first such answer for this window in an interval: the
     * one to log. Never set by rlr_table_peek(). */
    bool first_refusal;
} rlr_table_answer_t;

/* Bytes that a segment needs. `slots` is rounded up to a multiple of 8, and to
 * RLR_TABLE_SLOTS_MIN; plan for 0.6 of them in use. 0: out of range. */
size_t rlr_table_size(uint32_t slots, uint32_t rules);

/*
 * Makes a segment in `size` bytes at `memory`, which must be 64-byte aligned,
 * shared by all processes and zero (a fresh anonymous mapping). `secret` must
 * be random, or rlr_table_secret() of the segment to carry over from.
 */
rlr_table_status_t rlr_table_create(
    void *memory, size_t size, uint32_t slots, uint32_t rules,
    const unsigned char secret[RLR_TABLE_SECRET_SIZE]);

/*
 * Opens a segment for a configuration. rule_names[i] is the stable name of a
 * rule: everything that makes it the same rule in the next configuration
 * (region, name, kind of key), not its position and not its limit. Its slot is
 * written to rule_slots[i]; a name that the segment knows keeps its slot, and
 * so its counters and windows. The same name twice gives the same slot.
 * Call it once per configuration, in the parent, not at the same time as
 * another attach; children that serve an older configuration may go on. From
 * now on, where the two configurations' limits for a key differ, the newer
 * one's count for both from its first request on.
 */
rlr_table_status_t rlr_table_attach(rlr_table_t *table, void *memory,
                                    size_t size, const char *const *rule_names,
                                    uint32_t count, uint32_t *rule_slots);

/*
 * Copies windows and counters of all rules that both tables know to `table`,
 * which must have been created with the other's secret and not be in use yet.
 * Keys that find no slot raise the counter that they share from then on, so
 * that nobody gains by it. Children that still use `old` go on there: until
 * they are gone a key may be admitted by both.
 */
rlr_table_status_t rlr_table_carry_over(const rlr_table_t *table,
                                        const rlr_table_t *old,
                                        const rlr_clock_t *clock);

/* The segment's secret, borrowed from it: only for rlr_table_create(). */
const unsigned char *rlr_table_secret(const rlr_table_t *table);

/*
 * Asks for one admission and counts the outcome. An invalid limit is refused
 * with a wait of one second. Any thread of any process.
 */
void rlr_table_admit(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_clock_t *clock, rlr_table_answer_t *answer);

/* What rlr_table_admit() would answer, without charging or counting;
 * decision.remaining is what is left before the request. answer->overflow says
 * that the answer comes from the rule's overflow window. */
void rlr_table_peek(const rlr_table_t *table,
                    const rlr_table_request_t *request,
                    const rlr_clock_t *clock, rlr_table_answer_t *answer);

/* Has the key a place of its own? No lock; request->limit is not looked at. */
bool rlr_table_knows(const rlr_table_t *table,
                     const rlr_table_request_t *request);

/* Forgets what the key was charged; true if it had a slot. The counter that a
 * key without one shares is not touched. */
bool rlr_table_reset(const rlr_table_t *table,
                     const rlr_table_request_t *request,
                     const rlr_clock_t *clock);

#endif
