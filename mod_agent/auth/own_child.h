/* SPDX-License-Identifier: Apache-2.0 */
/* The child of httpd that this process is, for hooks, which get a request
 * only. */
#ifndef AGENT_AUTH_OWN_CHILD_H
#define AGENT_AUTH_OWN_CHILD_H

#include "../http/call.h"

/* Called in child_init, once the child is set up; NULL: its start failed. */
void agent_own_child_set(const agent_child_t *child);

/* Returns it; NULL before it is set, and when its start failed. */
const agent_child_t *agent_own_child_get(void);

#endif
