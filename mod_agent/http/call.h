/* SPDX-License-Identifier: Apache-2.0 */
/* One API request on its way through a handler, and what a child has for all
 * of them. */
#ifndef AGENT_HTTP_CALL_H
#define AGENT_HTTP_CALL_H

#include <apr_buckets.h>
#include <httpd.h>

#include "../config/config.h"
#include "../db/pool.h"
#include "../model/schema.h"
#include "../wait/waiter.h"

/* Path parameters of one route at most. */
#define AGENT_MAX_PARAMS 3

/* When an error was logged last, and how often it was not since. */
typedef struct agent_problem_memory_t {
    _Atomic apr_time_t at[AGENT_E_COUNT];
    _Atomic unsigned kept[AGENT_E_COUNT];
} agent_problem_memory_t;

/* What the bodies of a child may take, and the one of a request; see body.h. */
typedef struct agent_bodies_t agent_bodies_t;
typedef struct agent_body_t agent_body_t;

/* Made in child_init, read-only afterwards. */
typedef struct agent_child_t {
    agent_server_config_t *config;
    agent_pool_t *db;
    agent_waits_t *waits;
    /* NULL-terminated names of the graphs this server executes. */
    const char *const *graph_names;
    /* Write end of the supervisor's wake socket; -1 when there is none. */
    int wake_fd;
    /* The parts that change: what problem.c logged when, and what body.c may
     * still take. */
    agent_problem_memory_t *logged;
    agent_bodies_t *bodies;
} agent_child_t;

typedef struct agent_call_t {
    request_rec *r;
    apr_pool_t *pool; /* r->pool */
    const agent_child_t *child;
    const agent_dir_config_t *dir;
    agent_pool_t *db;
    const char *account_id;
    /* Path parameters: {account, first, second} so that ids can be handed to
     * the model as they are. */
    const char *ids[AGENT_MAX_PARAMS];
    /* The query string: name -> value; repeated names are kept in order. In a
     * pool of its own, which ends with the handler; NULL = none. */
    apr_table_t *query;
    /* The body as sent, "" without one, and what the handler's check found in
     * it; fields may be NULL. */
    const char *body;
    apr_size_t body_length;
    agent_body_t *received;
    const agent_fields_t *fields;
    /* What is being sent; NULL before the first bucket. */
    apr_bucket_brigade *brigade;
    agent_error_t *err;
    /* A page of another site sent this; see browser.h. */
    bool is_cross_site;
    /* httpd has sent an error of its own, for LimitRequestBody say. */
    bool is_answered;
} agent_call_t;

#endif
