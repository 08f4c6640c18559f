/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the slots of each address anew after a process has died while it held
 * a lock, for table*.c only; see table_share.h for what is counted.
 *
 * The requests of new keys do it, each a slice of the work. All sets are
 * counted, one after the other and each under its lock, in the second sums of
 * the counters; from then on whoever changes a holder in that set changes both
 * sums. When the last set is in, each second sum takes the place of the first.
 * Until then the first sums count, a few of which are too high by the slots
 * that the dead was about to take or give back. Another death begins the repair
 * anew.
 */
#ifndef RLR_TABLE_REPAIR_H
#define RLR_TABLE_REPAIR_H

#include "lock.h"

/* Most units of work that one call does: a unit is a lock, a counter or a slot.
 */
#define RLR_TABLE_REPAIR_WORK 1024U

/*
 * Goes on with the repair where the last call, of whatever process, ended. It
 * waits for nobody: nothing is done while another thread is at it, or as long
 * as the next set is locked. The caller holds no lock.
 */
void rlr_table_repair_some(const rlr_table_t *table);

#endif
