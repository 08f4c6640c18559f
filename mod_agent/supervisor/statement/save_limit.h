/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time limits of the output connection. A statement with several lines may
 * take AGENT_BATCH_SIZE_TIMEOUT, whatever was expected of them; so may a line
 * alone at first. If it needs longer, it gets half of the lease. A statement
 * may wait half of its limit for a lock, and is then tried again: the lock does
 * not come from the output.
 */
#ifndef AGENT_SUPERVISOR_SAVE_LIMIT_H
#define AGENT_SUPERVISOR_SAVE_LIMIT_H

#include "save.h"

/* The longest statement: of a line alone that needs longer, or of others. */
apr_interval_time_t agent_save_limit_get(const agent_context_t *context,
                                         bool is_long);

/* Whether the connection has the longer limit. */
bool agent_save_limit_is_long(const agent_save_t *save);

/* When the next dedicated batch is due, if the connection has the limit that it
 * needs, or if it has the other one; else never. */
apr_time_t agent_save_limit_due(const agent_save_t *save, bool has_limit);

/* Sets the limit that the next dedicated batch needs. part: an agent_save_t. */
extern const agent_operation_t agent_save_limit_operation;

#endif
