/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a built-in graph and their names. */
#ifndef AGENT_RUNNER_NODE_H
#define AGENT_RUNNER_NODE_H

typedef enum runner_node_t {
    RUNNER_NODE_NONE,
    RUNNER_NODE_START,
    RUNNER_NODE_AGENT,
    RUNNER_NODE_TOOLS
} runner_node_t;

/* The name of a node in states and streams; NULL for RUNNER_NODE_NONE. */
const char *runner_node_name(runner_node_t node);

/* The node of that name; RUNNER_NODE_NONE when there is none. */
runner_node_t runner_node_find(const char *name);

#endif
