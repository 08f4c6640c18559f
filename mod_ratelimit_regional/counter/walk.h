/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the whole table, for the status page and for tests. Decisions do not
 * call this. */
#ifndef RLR_WALK_H
#define RLR_WALK_H

#include "table.h"

typedef struct rlr_counters_t {
    uint64_t admitted;
    uint64_t refused;
    uint64_t would_refuse; /* refused in a dry run; not in `refused` */
    uint64_t overflow; /* decisions by a shared counter; also counted above */
} rlr_counters_t;

/* Sums the counters of a row since the segment was created. */
void rlr_walk_counters(const rlr_table_t *table, uint32_t row,
                       rlr_counters_t *counters);

/* Returns the number of slots. */
uint32_t rlr_walk_slots(const rlr_table_t *table);

/* Counts the live keys per row in keys[0 .. rows - 1] by a walk through all
 * slots. Returns the number of live keys in all rows of the table. */
uint32_t rlr_walk_live_keys(const rlr_table_t *table, uint32_t *keys,
                            uint32_t rows, const rlr_clock_t *clock);

/* For tests: NULL, or an inconsistency of the segment. Exact only while no
 * other process uses it. */
const char *rlr_walk_validate(const rlr_table_t *table,
                              const rlr_clock_t *clock);

#endif
