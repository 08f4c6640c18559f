/* SPDX-License-Identifier: Apache-2.0 */
/* The own child; see own_child.h. */
#include "own_child.h"

/* Set in child_init. */
static const agent_child_t *own_child;

void agent_own_child_set(const agent_child_t *child)
{
    own_child = child;
}

const agent_child_t *agent_own_child_get(void)
{
    return own_child;
}
