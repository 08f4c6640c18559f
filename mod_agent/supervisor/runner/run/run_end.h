/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run leaves this worker: it ends, is released, cancelled or lost. Each
 * function updates the lease and the queues together; nothing else changes the
 * state of a lease.
 */
#ifndef AGENT_SUPERVISOR_RUN_END_H
#define AGENT_SUPERVISOR_RUN_END_H

#include "../../lease/lease.h"

/* Sets the state of the database's side. The lease may be freed. */
void agent_run_end_set_state(agent_runs_t *runs, agent_lease_t *lease,
                             agent_lease_state_t state);

/* Ends the runner's side. The lease may be freed. */
void agent_run_end_detach(agent_runs_t *runs, agent_lease_t *lease);

/*
 * Asks the runner to end the run within cancel_grace, which starts again while
 * the runner is not read or the run waits for credit. A run whose runner was
 * not given its start line is detached and released, uncounted; if it was
 * cancelled, the release ends it.
 */
void agent_run_end_cancel(agent_runs_t *runs, agent_lease_t *lease,
                          agent_lease_cause_t cause);

/* Asks the runner to stop the run at its next checkpoint, within `timeout`,
 * after which the caller cancels it. A run whose runner was not given its start
 * line is released, uncounted. */
void agent_run_end_stop(agent_runs_t *runs, agent_lease_t *lease,
                        apr_interval_time_t timeout);

/* Releases, uncounted, the runs of a group that wait for their start line. */
void agent_run_end_withdraw(agent_runs_t *runs, agent_lease_group_t *group);

/* Ends a lease that this worker no longer has in the database: asks the runner
 * to end the run, and stores no more of its output. */
void agent_run_end_lose(agent_runs_t *runs, agent_lease_t *lease);

/* Requeues the run. counted: whether the attempt counts; reason: a constant. */
void agent_run_end_release(agent_runs_t *runs, agent_lease_t *lease,
                           bool counted, const char *reason);

/* Requeues a run that was leased to this worker a second time under the same
 * epoch: output under the two leases could not be told apart. */
void agent_run_end_release_duplicate(agent_runs_t *runs,
                                     const agent_lease_key_t *key,
                                     const char *deployment_id);

/* Requeues, uncounted, a run that the database has leased to this worker under
 * a lease that is not HELD here. */
void agent_run_end_release_unknown(agent_runs_t *runs,
                                   const agent_lease_key_t *key,
                                   const char *deployment_id);

/* Ends the run in error with fail_run, after its other statements have failed.
 * error, message: constants. */
void agent_run_end_give_up(agent_runs_t *runs, agent_lease_t *lease,
                           const char *error, const char *message);

/* Ends the run for its runner: an `error` event, then that status. */
void agent_run_end_fail(agent_runs_t *runs, agent_lease_t *lease,
                        const char *status, const char *error,
                        const char *message);

/* Ends the run as `timeout`. */
void agent_run_end_time_out(agent_runs_t *runs, agent_lease_t *lease);

/* Discards unsent output of a run that was claimed just now: it belongs to
 * older leases, or to one under the same epoch whose claim the database lost.
 * Leases whose end is discarded become GONE. */
void agent_run_end_discard_output(agent_runs_t *runs, const char *run_id);

/* Sets all leases to GONE. */
void agent_run_end_abandon_all(agent_runs_t *runs);

#endif
