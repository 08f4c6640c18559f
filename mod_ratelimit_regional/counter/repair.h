/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recounts the slots of each address (share.h) after a process has died while
 * it held a lock. Private to counter/.
 *
 * Each request of a new key does a part of the work. Under its lock, the slots
 * of a set are added to the recounts; from then on a change of a holder in that
 * set changes the count and the recount. After the last set the recounts
 * replace the counts. Until then the counts apply; a few of them are too high
 * by the slots that the dead process was claiming or reclaiming. If another
 * process dies, the repair starts again.
 */
#ifndef RLR_REPAIR_H
#define RLR_REPAIR_H

#include "lock.h"
#include "repair_state.h"

/* Units of work per call, at most: locks, counters or slots. */
#define RLR_REPAIR_WORK 1024U

/* Continues the repair where the last call of any process stopped. Never
 * waits: does nothing while another thread repairs or the next set is locked.
 * The caller holds no lock. */
void rlr_repair_step(const rlr_table_t *table);

#endif
