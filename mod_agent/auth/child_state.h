/* SPDX-License-Identifier: Apache-2.0 */
/* Per-process data for hooks, which get a request only: the child of httpd that
 * this process is. */
#ifndef AGENT_AUTH_CHILD_STATE_H
#define AGENT_AUTH_CHILD_STATE_H

#include "../http/call.h"

/* Called in child_init, once the child is set up; NULL: its start failed. */
void agent_child_state_set(const agent_child_t *child);

/* Returns the child; NULL before it is set, and when its start failed. */
const agent_child_t *agent_child_state_get(void);

#endif
