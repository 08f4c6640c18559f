/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration, read through getters that return defaults for unset
 * values. Unset is -1 or NULL; directives.c sets the values, config.c merges
 * them.
 */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

#include "../core/egress.h"

/* Maximum of AgentMaxWaiters. */
#define AGENT_MAX_WAITERS 100000

/* One tool of a built-in graph. */
typedef struct agent_tool_t {
    const char *name;
    /* NULL for a built-in tool. */
    const char *method;
    const char *url;
    const char *description;
    /* JSON text of the arguments' JSON Schema. */
    const char *schema;
} agent_tool_t;

/* <AgentGraph NAME>: a built-in graph and its model. */
typedef struct agent_graph_t {
    const char *name;
    /* UUIDv5 of the name: the graph's system assistant. */
    const char *assistant_id;
    /* demo, anthropic or openai. */
    const char *provider;
    const char *model;
    const char *url;
    /* Read from AgentModelKeyFile at start; never logged. The only copy. */
    char *key;
    const char *system_prompt;
    int max_steps;
    int max_tokens;
    apr_interval_time_t timeout;
    apr_array_header_t *tools; /* of agent_tool_t * */
} agent_graph_t;

/* The configuration of the server, shared by its virtual hosts. */
typedef struct agent_server_config_t {
    const char *database;
    const char *node;
    const char *runner;
    const char *runner_user;
    const char *feedback_url;
    int runners;
    int runner_slots;
    apr_int64_t runner_memory;
    int max_waiters; /* see capacity.h */
    int waiters_per_address;
    int parking;
    int pool_size;
    apr_interval_time_t retention; /* whole days */
    apr_interval_time_t pool_wait;
    apr_interval_time_t query_timeout;
    apr_interval_time_t connect_timeout;
    apr_interval_time_t run_timeout;
    apr_interval_time_t drain_timeout;
    apr_array_header_t *graphs; /* of agent_graph_t * */
    int webhooks;
    apr_interval_time_t webhook_timeout;
    agent_egress_t *webhook_egress;
    /* Read from AgentWebhookSecretFile at start; never logged, never copied. */
    unsigned char *webhook_key;
    apr_size_t webhook_key_length;
} agent_server_config_t;

/* The configuration of a location. */
typedef struct agent_dir_config_t {
    const char *prefix;
    const char *multitask_default;
    apr_int64_t max_body;
    apr_array_header_t *origins; /* of agent_origin_pattern_t */
} agent_dir_config_t;

/* For the module record: configurations with all values unset, and merged ones;
 * in pool. */
void *agent_config_create_server(apr_pool_t *pool, server_rec *server);
void *agent_config_merge_server(apr_pool_t *pool, void *base, void *add);
void *agent_config_create_dir(apr_pool_t *pool, char *path);
void *agent_config_merge_dir(apr_pool_t *pool, void *base, void *add);

/* Returns the main server's configuration, borrowed until the next restart. */
agent_server_config_t *agent_config_server(const server_rec *server);

/* Overwrites the keys of models and webhooks; for httpd's children, since only
 * the supervisor needs them. */
void agent_config_forget_keys(agent_server_config_t *config);

/* Returns the request's configuration, borrowed from it. */
const agent_dir_config_t *agent_config_dir(const request_rec *r);

/* Returns the handler of the location's SetHandler before httpd sets
 * r->handler; or NULL. */
const char *agent_config_handler(request_rec *r);

/* The following functions return a value or its default. Texts are borrowed
 * from the configuration, unless a pool is passed. */
const char *agent_config_node(const agent_server_config_t *config,
                              apr_pool_t *pool);
const char *agent_config_runner(const agent_server_config_t *config);
const char *agent_config_runner_user(const agent_server_config_t *config);
/* A URL with {run_id} and {key}; NULL = none. */
const char *agent_config_feedback_url(const agent_server_config_t *config);
int agent_config_runners(const agent_server_config_t *config);
int agent_config_runner_slots(const agent_server_config_t *config);
/* Bytes of one runner; 0 = unlimited. */
apr_int64_t agent_config_runner_memory(const agent_server_config_t *config);
/* AgentParking. */
bool agent_config_parking(const agent_server_config_t *config);
/* Connections of one child in use at once; dbd_max = mod_dbd's DBDMax. */
int agent_config_pool_size(const agent_server_config_t *config, int dbd_max);
int agent_config_retention_days(const agent_server_config_t *config);
apr_interval_time_t agent_config_pool_wait(const agent_server_config_t *);
apr_interval_time_t agent_config_query_timeout(const agent_server_config_t *);
apr_interval_time_t agent_config_connect_timeout(const agent_server_config_t *);
apr_interval_time_t agent_config_run_timeout(const agent_server_config_t *);
apr_interval_time_t agent_config_drain_timeout(const agent_server_config_t *);

/* The rule for URLs of webhooks; NULL with AgentWebhooks Off. */
const agent_egress_t *agent_config_webhook_egress(
    const agent_server_config_t *config);
apr_interval_time_t agent_config_webhook_timeout(const agent_server_config_t *);

const char *agent_config_prefix(const agent_dir_config_t *config);
const char *agent_config_multitask(const agent_dir_config_t *config);
apr_size_t agent_config_max_body(const agent_dir_config_t *config);
/* Of agent_origin_pattern_t; NULL without AgentAllowOrigin. */
const apr_array_header_t *agent_config_origins(
    const agent_dir_config_t *config);

/*
 * Returns the arguments, as written, of the first directive of that name at
 * server level; NULL if there is none. For directives of other modules, which
 * do not export them (DBDParams, DBDMax).
 */
const char *agent_config_other_directive(const char *name);

#endif
