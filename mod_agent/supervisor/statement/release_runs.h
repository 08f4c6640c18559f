/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the queue of releases: release_runs, or fail_run for a run that cannot
 * be requeued. */
#ifndef AGENT_SUPERVISOR_RELEASE_RUNS_H
#define AGENT_SUPERVISOR_RELEASE_RUNS_H

#include "../runner/run/runs.h"
#include "notify.h"
#include "worker.h"

typedef struct agent_release_runs_t {
    const agent_worker_t *worker;
    agent_runs_t *runs;
    agent_notify_t *notify;
    agent_schedule_t *schedule;
    /* When releases succeeded lately; each costs 1. */
    agent_patience_saved_t released;
} agent_release_runs_t;

extern const agent_operation_t agent_release_runs_operation;

/* Called when a connection is up again: a run whose release crashed the
 * database each time is to end in error (retry.h). */
void agent_release_runs_on_connected(agent_release_runs_t *statement);

/* Notifies of the runs that ended instead of being requeued. released: the
 * result of release_runs, mark_worker_dead or fail_run. */
void agent_release_runs_notify(agent_notify_t *notify,
                               agent_schedule_t *schedule,
                               const agent_db_result_t *released);

#endif
