/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of save_batch that fail: what is sent again, in which parts, and
 * whether a run ends because its output cannot be stored. */
#ifndef AGENT_SUPERVISOR_SAVE_FAILURE_H
#define AGENT_SUPERVISOR_SAVE_FAILURE_H

#include "save.h"

/* The functions `fail` of the operations (operation.h): of shared and of
 * dedicated batches. part: an agent_save_t. */
void agent_save_failure_take_shared(void *part, agent_failure_t failure);
void agent_save_failure_take_dedicated(void *part, agent_failure_t failure);

/* Called when a connection is up again, before output is sent on it. If the
 * last attempt crashed its process of the database, a shared batch is split,
 * the lines of a dedicated one are sent alone, and that of a line alone is
 * counted.
 */
void agent_save_failure_on_connected(agent_save_t *save);

#endif
