/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the counters to a segment of another size, at a restart. */
#ifndef RLR_CARRY_H
#define RLR_CARRY_H

#include "table.h"

/*
 * Copies the windows and counters of all rows that both segments have to
 * `table`, which must have been created with the secret of `old` and be
 * unused. The admissions of keys that get no slot are added to their shared
 * counters. Children that still use `old` continue there: until they exit, a
 * key may be admitted by both.
 */
rlr_table_status_t rlr_carry_over(const rlr_table_t *table,
                                  const rlr_table_t *old,
                                  const rlr_clock_t *clock);

#endif
