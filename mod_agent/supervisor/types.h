/* SPDX-License-Identifier: Apache-2.0 */
/* Forward declarations of what several parts of the supervisor share. */
#ifndef AGENT_SUPERVISOR_TYPES_H
#define AGENT_SUPERVISOR_TYPES_H

#include "../core/clock.h"

typedef struct agent_context_t agent_context_t;
typedef struct agent_runs_t agent_runs_t;
typedef struct agent_runner_t agent_runner_t;
typedef struct agent_lease_t agent_lease_t;

/* Runners at once, leaving ones included. The spawner has slots for more. */
#define AGENT_RUNNERS_MAX 200

#endif
