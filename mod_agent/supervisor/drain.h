/* SPDX-License-Identifier: Apache-2.0 */
/* The ways out: drained, told to stop, orphaned, or without a spawner. */
#ifndef AGENT_SUPERVISOR_DRAIN_H
#define AGENT_SUPERVISOR_DRAIN_H

#include "types.h"

typedef enum agent_mode_t {
    AGENT_MODE_RUNNING,
    /* No claims; what runs may finish. */
    AGENT_MODE_DRAINING,
    /* Runners are killed; the database is told, if there is time. */
    AGENT_MODE_LEAVING,
    AGENT_MODE_DONE
} agent_mode_t;

typedef struct agent_drain_t {
    /* When runs are asked to stop. */
    apr_time_t ask_at;
    /* When we go, whatever the database says. */
    apr_time_t leave_by;
} agent_drain_t;

/* SIGUSR1. */
void agent_drain_begin(agent_supervisor_t *sv);

/* Kills the runners and gives all runs back, in `patience` at most. */
void agent_drain_leave(agent_supervisor_t *sv, apr_interval_time_t patience,
                       const char *why);

void agent_drain_spawner_lost(agent_supervisor_t *sv);

/* Moves on when it is time to; returns when to be called again at the latest.
 */
apr_time_t agent_drain_step(agent_supervisor_t *sv);

#endif
