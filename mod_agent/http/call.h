/* SPDX-License-Identifier: Apache-2.0 */
/* A request of the API, and the data that all requests of a child share. */
#ifndef AGENT_HTTP_CALL_H
#define AGENT_HTTP_CALL_H

#include <apr_buckets.h>
#include <httpd.h>

#include "../config/config.h"
#include "../config/location.h"
#include "../core/attempts.h"
#include "../core/identity.h"
#include "../core/throttle.h"
#include "../db/pool.h"
#include "../model/ref.h"
#include "../model/schema.h"
#include "../model/served_deployment.h"
#include "../wait/waiter.h"

/* The memory of a child's bodies, and the body of one request; see body.h. */
typedef struct agent_bodies_t agent_bodies_t;
typedef struct agent_body_t agent_body_t;

/* The API of a handler name, and one of its routes; see router.h. */
typedef struct agent_api_t agent_api_t;
typedef struct agent_route_t agent_route_t;

/* Verifies API keys; see auth/. */
typedef struct agent_auth_t agent_auth_t;

/* Set in child_init; its members do not change later. Any thread may use the
 * objects that they point to. */
typedef struct agent_child_t {
    agent_server_config_t *config;
    /* NULL: no database, which is valid only on a server without graphs. */
    agent_db_pool_t *db;
    /* Half of its connections, for the turns of requests that wait; NULL
     * where no agent server is configured, like waiters. */
    agent_db_pool_t *turn_db;
    agent_waiter_registry_t *waiters;
    agent_served_deployments_t *deployments;
    /* Write end of the supervisor's wake socket, or -1. */
    int wake_fd;
    /* One for the log lines of each agent_error_id_t. */
    agent_throttle_t *throttles;
    agent_bodies_t *bodies;
    /* NULL: there is no database. */
    agent_auth_t *auth;
    /* Requests to create an account. */
    agent_attempts_t *sign_ups;
} agent_child_t;

/* The route of a method and path, or the reason for its error. */
typedef struct agent_match_t {
    /* NULL: none. */
    const agent_route_t *route;
    /* The path after AgentPrefix; NULL: outside of it. */
    const char *path;
    /* Without a route: the methods that the path has, or NULL; and the name of
     * a parameter whose segment is not a UUID, or NULL. */
    const char *allow;
    const char *not_uuid;
} agent_match_t;

typedef struct agent_call_t {
    request_rec *r;
    apr_pool_t *pool; /* r->pool */
    const agent_child_t *child;
    const agent_api_t *api;
    const agent_dir_config_t *dir;
    agent_db_pool_t *db;
    agent_match_t match;
    /* Owner of the request's verified key; NULL: no key was required. renew
     * verifies the key again, see auth/admission.h. */
    const agent_identity_t *identity;
    apr_status_t (*renew)(struct agent_call_t *call);
    /* Realm of the challenge of a 401; NULL: the default. */
    const char *realm;
    /* The authenticated user, to whom its runs belong; NULL: that of
     * x-user-id. */
    const char *user_id;
    /* The deployment, NULL for a route without data, and the ids in the path,
     * NULL where the path has none. */
    agent_run_ref_t ref;
    const char *checkpoint_id;
    /* The assistant's id, for the name of a graph that of its system assistant;
     * the namespace of a subgraph. */
    const char *assistant_id;
    const char *namespace;
    /* The {key_id} of the path, not validated. */
    const char *key_id;
    /* The decoded query string, name -> value, repeated names in order; NULL
     * without one. In a pool of its own, until the handler returns. */
    apr_table_t *query;
    /* The body as sent, "" without one. */
    const char *body;
    apr_size_t body_length;
    /* The buffer that body is in; NULL without a body. */
    agent_body_t *incoming;
    /* The members of the body, as its schema's check returned them; may be
     * NULL. */
    const agent_fields_t *fields;
    /* The brigade of the response; NULL before its first bucket. */
    apr_bucket_brigade *brigade;
    agent_error_t *err;
    /* The request was sent by a page of another site; see browser.h. */
    bool is_cross_site;
    /* httpd has sent the error response, for LimitRequestBody for example. */
    bool is_answered;
    /* Some AuthType has found a user, r->user. */
    bool is_authenticated;
} agent_call_t;

#endif
