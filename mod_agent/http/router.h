/* SPDX-License-Identifier: Apache-2.0 */
/* Maps method and path to a handler. */
#ifndef AGENT_HTTP_ROUTER_H
#define AGENT_HTTP_ROUTER_H

#include "call.h"

/* Sends the response. Returns what httpd's handler hook returns. */
typedef int (*agent_handler_t)(agent_call_t *call);

typedef struct agent_route_t {
    const char *method;
    /* The path after AgentPrefix. {thread_id}, {run_id} and {checkpoint_id}
     * match a UUID and set that member of the call. */
    const char *path;
    agent_handler_t handle;
} agent_route_t;

/*
 * Calls the handler of the matching route, with call->query decoded. Sends 404
 * when no path matches, 405 with Allow when only the method does not, and
 * answers OPTIONS. The last route has a NULL method.
 */
int agent_router_dispatch(agent_call_t *call, const agent_route_t *routes);

#endif
