/* SPDX-License-Identifier: Apache-2.0 */
/* Asking which of our runs were cancelled or taken from us. */
#ifndef AGENT_SUPERVISOR_CHECK_H
#define AGENT_SUPERVISOR_CHECK_H

#include "database.h"

typedef struct agent_check_t {
    apr_time_t due_at;
} agent_check_t;

extern const agent_operation_t agent_check_operation;

/* A run was cancelled: ask now. */
void agent_check_wake(agent_supervisor_t *sv);

#endif
