/* SPDX-License-Identifier: Apache-2.0 */
/* What looks at the whole table: for the operator and for tests. Nothing here
 * is on the way of a request. */
#ifndef RLR_TABLE_WALK_H
#define RLR_TABLE_WALK_H

#include "table.h"

typedef struct rlr_counters_t {
    uint64_t allowed;
    uint64_t refused;
    uint64_t would_refuse; /* refused in a dry run; not in `refused` */
    uint64_t overflow; /* decisions by an overflow window; also counted above */
} rlr_counters_t;

/* The counters of a rule since the segment was made. */
void rlr_table_counters(const rlr_table_t *table, uint32_t rule,
                        rlr_counters_t *counters);

/* Keys that the table has places for. */
uint32_t rlr_table_places(const rlr_table_t *table);

/*
 * Counts the keys whose windows hold something that counts, per rule slot, in
 * keys[0 .. rules - 1]; slots without a rule stay untouched by it. Walks the
 * whole table. Returns the sum; *capacity (may be NULL) is all places.
 */
uint32_t rlr_table_live_keys(const rlr_table_t *table, uint32_t *keys,
                             uint32_t rules, uint32_t *capacity,
                             const rlr_clock_t *clock);

/* For tests: NULL, or what is wrong with the segment. Exact only while no
 * other process works on it. */
const char *rlr_table_validate(const rlr_table_t *table,
                               const rlr_clock_t *clock);

#endif
