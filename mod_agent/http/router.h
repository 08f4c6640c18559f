/* SPDX-License-Identifier: Apache-2.0 */
/* Maps handler name, method and path to an endpoint. */
#ifndef AGENT_HTTP_ROUTER_H
#define AGENT_HTTP_ROUTER_H

#include "call.h"

/* Sends the response. Returns what httpd's handler hook returns. */
typedef int (*agent_handler_t)(agent_call_t *call);

struct agent_route_t {
    const char *method;
    /* The path after AgentPrefix. {thread_id}, {run_id} and {checkpoint_id}
     * match a UUID, {assistant_id} a UUID or the name of a graph, {namespace}
     * and {key_id} any text. Each sets that member of the call. */
    const char *path;
    agent_handler_t handle;
    /* The scope that a key must grant. */
    agent_scope_t scope;
    /* The route concerns data of the deployment: call->ref.deployment_id is
     * set. */
    bool has_data;
    /* The route needs no key, but concerns data of a customer: keys of other
     * regions are refused. */
    bool is_regional;
};

/* An API: the endpoints of the locations with one SetHandler. */
struct agent_api_t {
    /* As SetHandler names it. */
    const char *handler;
    /* The last route has a NULL method. */
    const agent_route_t *routes;
    /* Answers 503 on a server without graphs and without a database. */
    bool needs_waiters;
    /* Its requests concern the account of their key, not a deployment. */
    bool is_platform;
    /* Limit of request bodies, if AgentMaxBody is larger; 0: only AgentMaxBody
     * applies. */
    apr_size_t max_body;
};

/* Registers the APIs; called with the module's hooks. The last one has a NULL
 * handler. apis is kept. */
void agent_router_register(const agent_api_t *apis);

/* Returns the API of that handler; NULL for NULL and for handlers of other
 * modules. */
const agent_api_t *agent_router_find(const char *handler);

/* Returns the API of the request's location; NULL: it has another handler, or
 * mod_proxy has taken the request. */
const agent_api_t *agent_router_of(request_rec *r);

/* Returns the path after AgentPrefix, borrowed from r->uri; NULL: it does not
 * begin with that. */
const char *agent_router_path(const request_rec *r,
                              const agent_dir_config_t *dir);

/* Returns the route of the request in its location; NULL: it has none, or
 * agent_router_of() is NULL. For hooks, before there is a call. */
const agent_route_t *agent_router_route(request_rec *r);

/* Sets call->match, and the members of the call that the path's parameters
 * name. Sends nothing. */
void agent_router_match(agent_call_t *call);

/*
 * Sets call->ref.deployment_id, unless it is set. Errors:
 * DEPLOYMENT_NOT_FOUND, and those of the database.
 */
apr_status_t agent_router_set_deployment(agent_call_t *call);

/*
 * Calls the handler of call->match, with call->query decoded. Sends 404 when no
 * path matches, 405 with Allow when only the method does not, and answers
 * OPTIONS.
 */
int agent_router_dispatch(agent_call_t *call);

#endif
