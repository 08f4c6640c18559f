/* SPDX-License-Identifier: Apache-2.0 */
/* Per-process data for hooks; see child_state.h. */
#include "child_state.h"

/* Set in child_init. */
static const agent_child_t *own_state;

void agent_child_state_set(const agent_child_t *child)
{
    own_state = child;
}

const agent_child_t *agent_child_state_get(void)
{
    return own_state;
}
