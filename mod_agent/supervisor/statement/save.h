/* SPDX-License-Identifier: Apache-2.0 */
/* save_batch: stores the output of runs, on either connection. */
#ifndef AGENT_SUPERVISOR_SAVE_H
#define AGENT_SUPERVISOR_SAVE_H

#include "database.h"

/* The shared batches, and the lanes (../lease/batch.h). */
extern const agent_operation_t agent_batch_operation;
extern const agent_operation_t agent_lane_operation;

#endif
