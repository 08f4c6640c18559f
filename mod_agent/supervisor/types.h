/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the parts of the supervisor need of one another; state.h has the
 * whole. */
#ifndef AGENT_SUPERVISOR_TYPES_H
#define AGENT_SUPERVISOR_TYPES_H

#include <apr_time.h>

typedef struct agent_supervisor_t agent_supervisor_t;
typedef struct agent_runner_t agent_runner_t;
typedef struct agent_lease_t agent_lease_t;

/* Runners at once, those to be replaced included; the spawner knows a few more.
 */
#define AGENT_RUNNERS_MAX 200

/* A time that never comes. */
#define AGENT_NEVER APR_INT64_MAX

#endif
