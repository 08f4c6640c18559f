/* SPDX-License-Identifier: Apache-2.0 */
/* Why the output of a run cannot be stored: the error in which the run ends. */
#ifndef AGENT_SUPERVISOR_REFUSAL_H
#define AGENT_SUPERVISOR_REFUSAL_H

#include "failure.h"

typedef struct agent_refusal_t {
    const char *code;
    const char *message;
} agent_refusal_t;

/* The database crashed at each attempt to store a line alone. */
extern const agent_refusal_t agent_refusal_crashed;

/* Returns the error of a statement that failed because of its parameters; NULL:
 * they may not be the cause. */
const agent_refusal_t *agent_refusal_find(agent_failure_t failure);

/* Returns the error of a line alone whose last attempt failed in this way, as
 * others before. */
const agent_refusal_t *agent_refusal_find_last(agent_failure_t failure);

#endif
