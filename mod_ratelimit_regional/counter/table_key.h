/* SPDX-License-Identifier: Apache-2.0 */
/* A key as the table knows it, and what follows from its hash; for table*.c
 * only. */
#ifndef RLR_TABLE_KEY_H
#define RLR_TABLE_KEY_H

#include "siphash.h"
#include "table.h"

/* Sets where the slot of a key may be. */
#define RLR_TABLE_CHOICES 3
/* Overflow windows of a rule, and locks for rebuilding them. */
#define RLR_TABLE_GROUPS 16U

typedef struct rlr_table_key_t {
    uint64_t tag;
    uint64_t owner;
    uint64_t holder; /* set where a slot is to be claimed; 0: nobody */
    uint32_t rule;
    uint32_t sets[RLR_TABLE_CHOICES]; /* where its slot may be */
} rlr_table_key_t;

/* The sets follow from the owner alone, so that a slot can be carried over to
 * a segment of another size. The odd factor (of the golden ratio) makes a third
 * number of the two halves. */
static inline void rlr_table_key_place(rlr_table_key_t *key,
                                       const rlr_table_t *table)
{
    uint64_t third = key->owner * 0x9e3779b97f4a7c15U;

    key->sets[0] = (uint32_t)((key->owner >> 32) * table->sets >> 32);
    key->sets[1] = (uint32_t)((key->owner & 0xffffffffU) * table->sets >> 32);
    key->sets[2] = (uint32_t)((third >> 32) * table->sets >> 32);
}

/* The key of an identity with this hash; nobody holds it. */
static inline void rlr_table_key_fill(rlr_table_key_t *key,
                                      const rlr_table_t *table, uint32_t rule,
                                      rlr_siphash_t hash)
{
    key->rule = rule;
    key->tag = hash.first != 0 ? hash.first : 1;
    key->owner = hash.second;
    key->holder = 0;
    rlr_table_key_place(key, table);
}

static inline uint32_t rlr_table_key_group(const rlr_table_key_t *key)
{
    return (uint32_t)(key->tag >> 60) % RLR_TABLE_GROUPS;
}

#endif
