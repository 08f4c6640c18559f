/* SPDX-License-Identifier: Apache-2.0 */
/* Why the output of a run cannot be stored: the error in which the run ends. */
#ifndef AGENT_SUPERVISOR_REFUSAL_H
#define AGENT_SUPERVISOR_REFUSAL_H

#include "failure.h"

typedef struct agent_refusal_t {
    const char *code;
    const char *message;
} agent_refusal_t;

extern const agent_refusal_t agent_refusal_invalid;
extern const agent_refusal_t agent_refusal_crashed;
extern const agent_refusal_t agent_refusal_too_slow;

/* Returns the error of a statement that failed because of its parameters; NULL:
 * they may not be the cause. */
const agent_refusal_t *agent_refusal_find(agent_failure_t failure);

#endif
