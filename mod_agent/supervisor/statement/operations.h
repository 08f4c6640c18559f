/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of each connection, by importance; ended by NULL. */
#ifndef AGENT_SUPERVISOR_OPERATIONS_H
#define AGENT_SUPERVISOR_OPERATIONS_H

#include "database.h"

/* Each bounded in rows and bytes, so that a renewal waits for none of them. */
extern const agent_operation_t *const agent_operations[];

/* These may be large or slow. */
extern const agent_operation_t *const agent_bulk_operations[];

#endif
