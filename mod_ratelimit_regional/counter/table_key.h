/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of a key and the sets that follow from it. Private to counter/. */
#ifndef RLR_TABLE_KEY_H
#define RLR_TABLE_KEY_H

#include "choice.h"
#include "siphash.h"
#include "table.h"

/* Overflow windows per row, and their locks. */
#define RLR_OVERFLOW_WINDOWS 16U

typedef struct rlr_table_key_t {
    uint64_t tag;
    uint64_t owner;
    uint64_t holder; /* set before a slot is claimed; 0: none */
    /* Has no shared counter, and is one of its holder's first: it may claim
     * what is for these counters. */
    bool is_first;
    uint32_t row;
    uint32_t sets[RLR_CHOICES]; /* that may have its slot */
} rlr_table_key_t;

/* Computes the sets from the owner alone, so that a slot can be carried over
 * to a segment of another size. */
static inline void rlr_table_key_set_sets(rlr_table_key_t *key,
                                          const rlr_table_t *table)
{
    rlr_choice_find(key->sets, key->owner, table->sets);
}

/* Sets the key of this hash, without a holder. */
static inline void rlr_table_key_fill(rlr_table_key_t *key,
                                      const rlr_table_t *table, uint32_t row,
                                      rlr_siphash_t hash)
{
    key->row = row;
    key->tag = hash.first != 0 ? hash.first : 1;
    key->owner = hash.second;
    key->holder = 0;
    key->is_first = false;
    rlr_table_key_set_sets(key, table);
}

static inline uint32_t rlr_table_key_overflow(const rlr_table_key_t *key)
{
    return (uint32_t)(key->tag >> 60) % RLR_OVERFLOW_WINDOWS;
}

#endif
