/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a built-in graph's nodes. */
#include "node.h"

#include <string.h>

static const char *const names[] = {NULL, "__start__", "agent", "tools"};

const char *runner_node_name(runner_node_t node)
{
    return names[node];
}

runner_node_t runner_node_find(const char *name)
{
    for (runner_node_t node = RUNNER_NODE_START; node <= RUNNER_NODE_TOOLS;
         node++) {
        if (strcmp(names[node], name) == 0) {
            return node;
        }
    }
    return RUNNER_NODE_NONE;
}
