/* SPDX-License-Identifier: Apache-2.0 */
/* Deleting threads whose time is over, in short transactions. */
#ifndef AGENT_SUPERVISOR_EXPIRE_H
#define AGENT_SUPERVISOR_EXPIRE_H

#include "database.h"

typedef struct agent_expire_t {
    apr_time_t due_at;
} agent_expire_t;

extern const agent_operation_t agent_expire_operation;

#endif
