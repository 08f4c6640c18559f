/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one httpd child: what it creates at its start, and its end. */
#ifndef AGENT_CHILD_H
#define AGENT_CHILD_H

#include "http/call.h"

/*
 * In child_init, after mod_dbd's. NULL when the configuration has no graph, or
 * when the start failed, which is logged.
 */
agent_child_t *agent_child_start(server_rec *server, apr_pool_t *pool);

/* In child_stopping: ends the waits of requests, those for the end of a run
 * after AgentDrainTimeout if graceful. */
void agent_child_stop(const agent_child_t *child, bool graceful);

#endif
