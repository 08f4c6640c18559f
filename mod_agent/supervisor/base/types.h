/* SPDX-License-Identifier: Apache-2.0 */
/* Forward declarations of what several parts of the supervisor share. */
#ifndef AGENT_SUPERVISOR_TYPES_H
#define AGENT_SUPERVISOR_TYPES_H

#include "../../core/clock.h"
#include "pool_config.h"

typedef struct agent_context_t agent_context_t;
typedef struct agent_runs_t agent_runs_t;
typedef struct agent_runner_t agent_runner_t;
typedef struct agent_lease_t agent_lease_t;
typedef struct agent_runner_pool_t agent_runner_pool_t;
typedef struct agent_runner_table_t agent_runner_table_t;

/* Quarantine runners at once, of all pools. */
#define AGENT_RUNNERS_QUARANTINE 16
/* Runners of a pool at once: the ordinary ones, those that they replace, and
 * quarantine runners. */
#define AGENT_RUNNERS_OF_POOL(runners)                                         \
    (2 * (runners) + AGENT_RUNNERS_QUARANTINE)
/* Runners of all pools at once. The spawner has slots for more; three
 * descriptors each leave room below the usual limit of 1024. */
#define AGENT_RUNNERS_MAX AGENT_RUNNERS_OF_POOL(AGENT_POOLS_MAX_RUNNERS)

#endif
