/* SPDX-License-Identifier: Apache-2.0 */
/* From method and path to a handler. */
#ifndef AGENT_HTTP_ROUTER_H
#define AGENT_HTTP_ROUTER_H

#include "call.h"

typedef int (*agent_handler_t)(agent_call_t *call);

typedef struct agent_route_t {
    const char *method;
    /* Segments after the prefix; {id} stands for a UUID. */
    const char *path;
    agent_handler_t handle;
} agent_route_t;

/*
 * Calls the handler of the route that fits, with its UUIDs in call->ids[1..]
 * and the query parsed. Sends 404 when no path fits, 405 + Allow when only the
 * method does not, and answers OPTIONS. routes end with a NULL method.
 */
int agent_router_dispatch(agent_call_t *call, const agent_route_t *routes);

#endif
