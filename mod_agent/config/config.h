/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration, read through getters that return defaults for unset
 * values. Unset is -1 or NULL; directives.c sets the values, config.c merges
 * them. */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

#include "../core/egress.h"
#include "runner.h"

/* Maximum of AgentMaxWaiters. */
#define AGENT_MAX_WAITERS 100000

/* The configuration of the server, shared by its virtual hosts. */
typedef struct agent_server_config_t {
    const char *database;
    const char *node;
    /* See region.h. */
    const char *region;
    int wrong_region;
    apr_array_header_t *regions; /* of agent_region_t */
    const char *runner;
    const char *cgroup;
    int max_waiters; /* see capacity.h */
    int waiters_per_address;
    int parking;
    int pool_size;
    apr_interval_time_t retention;                       /* whole days */
    apr_interval_time_t audit_retention;                 /* whole days */
    apr_interval_time_t log_retention, backup_retention; /* whole days */
    apr_interval_time_t pool_wait;
    apr_interval_time_t query_timeout;
    apr_interval_time_t connect_timeout;
    apr_interval_time_t drain_timeout;
    apr_array_header_t *graphs; /* of all hosts, see graph.h */
    int webhooks;
    apr_interval_time_t webhook_timeout;
    agent_egress_t *webhook_egress;
    /* Secrets of all hosts: agent_webhook_secret_t. */
    apr_array_header_t *webhook_secrets;
    apr_array_header_t *limits; /* of agent_account_limit_t, see limit.h */
    apr_time_t configured_at;   /* when it was read */
    /* Directives of all hosts: agent_host_directive_t, see effect.h. */
    apr_array_header_t *host_directives;
} agent_server_config_t;

/* AgentWebhookSecretFile of a host, for the host's deployment; of the main
 * server, for all without one. */
typedef struct agent_webhook_secret_t {
    const server_rec *server;
    /* Read at start; never logged, never copied. */
    unsigned char *key;
    apr_size_t length;
} agent_webhook_secret_t;

/* The configuration of a location. */
typedef struct agent_dir_config_t {
    /* Settings of a host; not of its locations. */
    agent_runner_settings_t runner;
    const char *deployment; /* see core/deployment.h */
    const char *prefix;
    const char *multitask_default;
    apr_int64_t max_body;
    apr_interval_time_t call_timeout;
    apr_interval_time_t thread_ttl; /* 0: none */
    /* NULL: inherited; empty: none. */
    const char *feedback_url;
    apr_array_header_t *origins; /* of agent_origin_pattern_t */
    apr_array_header_t *headers; /* of agent_header_pattern_t */
    apr_array_header_t *trusted; /* of apr_ipsubnet_t * */
    int sign_up;                 /* agent_sign_up_t */
} agent_dir_config_t;

/* For the module record: create configurations with all values unset, and merge
 * them; in pool. */
void *agent_config_create_server(apr_pool_t *pool, server_rec *server);
void *agent_config_merge_server(apr_pool_t *pool, void *base, void *add);
void *agent_config_create_dir(apr_pool_t *pool, char *path);
void *agent_config_merge_dir(apr_pool_t *pool, void *base, void *add);

/* Returns the main server's configuration, borrowed until the next restart. */
agent_server_config_t *agent_config_server(const server_rec *server);

/* Returns the values of a (virtual) host outside of its locations, borrowed. */
const agent_dir_config_t *agent_config_host(const server_rec *server);

/* Returns AgentDeployment outside of its locations: that of its graphs. */
const char *agent_config_host_deployment(const server_rec *server);

/* Overwrites the keys of models and webhooks, in httpd's children. */
void agent_config_forget_keys(agent_server_config_t *config);

/* Returns the request's configuration, borrowed from it. */
const agent_dir_config_t *agent_config_dir(const request_rec *r);

/* Returns that of SetHandler, before httpd sets r->handler, or NULL. */
const char *agent_config_handler(request_rec *r);

/* The following functions return a value or its default. Texts are borrowed
 * from the configuration, unless a pool is passed. */
const char *agent_config_node(const agent_server_config_t *config,
                              apr_pool_t *pool);
const char *agent_config_runner(const agent_server_config_t *config);
/* AgentRunnerCgroup; NULL = none. */
const char *agent_config_cgroup(const agent_server_config_t *config);
/* AgentParking. */
bool agent_config_parking(const agent_server_config_t *config);
/* Connections of one child in use at once; dbd_max = mod_dbd's DBDMax. */
int agent_config_pool_size(const agent_server_config_t *config, int dbd_max);
int agent_config_retention_days(const agent_server_config_t *config);
int agent_config_audit_days(const agent_server_config_t *config);
/* -1: not known. */
int agent_config_log_days(const agent_server_config_t *config);
int agent_config_backup_days(const agent_server_config_t *config);
apr_interval_time_t agent_config_pool_wait(const agent_server_config_t *);
apr_interval_time_t agent_config_query_timeout(const agent_server_config_t *);
apr_interval_time_t agent_config_connect_timeout(const agent_server_config_t *);
apr_interval_time_t agent_config_drain_timeout(const agent_server_config_t *);
/* The rule for URLs of webhooks; NULL with AgentWebhooks Off. */
const agent_egress_t *agent_config_webhook_egress(
    const agent_server_config_t *config);
apr_interval_time_t agent_config_webhook_timeout(const agent_server_config_t *);

/* AgentDeployment; see core/deployment.h. */
const char *agent_config_deployment(const agent_dir_config_t *config);
/* AgentPrefix; "" without one. */
const char *agent_config_prefix(const agent_dir_config_t *config);
/* AgentMultitaskDefault. */
const char *agent_config_multitask(const agent_dir_config_t *config);
/* In bytes. */
apr_size_t agent_config_max_body(const agent_dir_config_t *config);
apr_interval_time_t agent_config_call_timeout(const agent_dir_config_t *config);
/* AgentThreadTTL, AgentStoreTTL; 0 = none. */
apr_interval_time_t agent_config_thread_ttl(const agent_dir_config_t *config);
apr_interval_time_t agent_config_store_ttl(const agent_dir_config_t *config);
/* A URL with {run_id} and {key}; NULL = none. */
const char *agent_config_feedback_url(const agent_dir_config_t *config);
/* Of agent_origin_pattern_t; NULL without AgentAllowOrigin. */
const apr_array_header_t *agent_config_origins(const agent_dir_config_t *);
/* Of agent_header_pattern_t; NULL without AgentConfigurableHeaders. */
const apr_array_header_t *agent_config_headers(const agent_dir_config_t *);
/* Of apr_ipsubnet_t *; NULL without AgentTrustUserHeader. */
const apr_array_header_t *agent_config_trusted(const agent_dir_config_t *);

#endif
