/* SPDX-License-Identifier: Apache-2.0 */
/* How the supervisor ends: after a drain, a signal, the end of its parent or of
 * the spawner. */
#ifndef AGENT_SUPERVISOR_SHUTDOWN_H
#define AGENT_SUPERVISOR_SHUTDOWN_H

#include "runner/io/io.h"
#include "statement/worker.h"
#include "webhook/delivery.h"

typedef struct agent_shutdown_t {
    agent_context_t *context;
    agent_runner_io_t *io;
    agent_runs_t *runs;
    agent_worker_t *worker;
    agent_delivery_table_t *webhooks;
    const agent_notify_t *notify;
    const agent_database_t *control;
    const agent_database_t *bulk;
    const agent_database_t *output;
    /* When runs are asked to stop, and when those that did not are cancelled
     * (core/clock.h). */
    apr_time_t stop_at;
    apr_time_t cancel_at;
    /* When the supervisor ends even without the database. */
    apr_time_t end_by;
} agent_shutdown_t;

/* SIGUSR1: no more runs are claimed; those that execute may finish. */
void agent_shutdown_drain(agent_shutdown_t *shutdown);

/* Kills the runners and requeues all runs, within `timeout`; a second call can
 * only shorten it. why: for the log. */
void agent_shutdown_stop(agent_shutdown_t *shutdown,
                         apr_interval_time_t timeout, const char *why);

/* Takes the next step when it is due; returns when to be called again at the
 * latest. */
apr_time_t agent_shutdown_step(agent_shutdown_t *shutdown);

#endif
