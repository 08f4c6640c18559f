/* SPDX-License-Identifier: Apache-2.0 */
/* save_batch: stores the output of runs, on the first connection and, of
 * dedicated batches, on the third one. */
#ifndef AGENT_SUPERVISOR_SAVE_H
#define AGENT_SUPERVISOR_SAVE_H

#include "../runner/runs.h"
#include "notify.h"
#include "worker.h"

typedef struct agent_save_t {
    const agent_worker_t *worker;
    const agent_runner_table_t *runners;
    agent_runs_t *runs;
    agent_notify_t *notify;
    agent_schedule_t *schedule;
} agent_save_t;

/* For shared batches, and for dedicated ones (../lease/batch.h). part: the same
 * agent_save_t. */
extern const agent_operation_t agent_batch_operation;
extern const agent_operation_t agent_dedicated_batch_operation;

#endif
