/* SPDX-License-Identifier: Apache-2.0 */
/* How the supervisor ends: after a drain, a signal, the end of its parent or of
 * the spawner. */
#ifndef AGENT_SUPERVISOR_DRAIN_H
#define AGENT_SUPERVISOR_DRAIN_H

#include "types.h"

typedef struct agent_drain_t {
    /* When runs are asked to stop. */
    apr_time_t ask_at;
    /* When the supervisor ends even without the database. */
    apr_time_t leave_by;
} agent_drain_t;

/* SIGUSR1. */
void agent_drain_begin(agent_supervisor_t *sv);

/* Kills the runners and requeues all runs, within `timeout`. */
void agent_drain_leave(agent_supervisor_t *sv, apr_interval_time_t timeout,
                       const char *why);

void agent_drain_spawner_lost(agent_supervisor_t *sv);

/* Takes the next step when it is due; returns when to be called again at the
 * latest. */
apr_time_t agent_drain_step(agent_supervisor_t *sv);

#endif
