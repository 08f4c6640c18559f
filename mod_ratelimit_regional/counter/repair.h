/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recounts the slots of each address (share.h) after a process has died with a
 * lock. Private to counter/.
 *
 * The requests of new keys do the work in slices. Each set is counted under
 * its lock in the second sums of the counters; from then on a change of a
 * holder in that set changes both sums. After the last set each second sum
 * replaces the first. Until then the first sums are in force; a few are too
 * high by the slots that the dead process was claiming or reclaiming. Another
 * death restarts the repair.
 */
#ifndef RLR_REPAIR_H
#define RLR_REPAIR_H

#include "lock.h"

/* Units of work per call, at most: locks, counters or slots. */
#define RLR_REPAIR_WORK 1024U

/* Continues the repair where the last call of any process stopped. Never
 * waits: does nothing while another thread repairs or the next set is locked.
 * The caller holds no lock. */
void rlr_repair_step(const rlr_table_t *table);

#endif
