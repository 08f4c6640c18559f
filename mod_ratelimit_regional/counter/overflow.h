/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overflow: decisions for keys without a slot, by a shared counter. That is the
 * counter of the key's rule and holder or, if the table has no slot for that
 * either, one of the rule's overflow windows. Private to counter/.
 *
 * The caller holds the locks of the key's sets and of the shared counter's
 * sets. Functions that return a bool return false if a further lock failed.
 */
#ifndef RLR_OVERFLOW_H
#define RLR_OVERFLOW_H

#include "call.h"

/*
 * Copies the admissions that a new slot of the key starts with: the key may
 * have been charged to its shared counter. *interval_sec is raised to that
 * counter's interval.
 */
bool rlr_overflow_copy_locked(rlr_window_copy_t *copy, uint32_t *interval_sec,
                              const rlr_call_t *call);

/* Decides by the shared counter. *slot is the one whose window was charged. */
bool rlr_overflow_decide_locked(const rlr_call_t *call,
                                rlr_table_decision_t *decision,
                                rlr_slot_t **slot);

#endif
