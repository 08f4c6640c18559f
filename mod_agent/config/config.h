/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the server, shared by its virtual hosts; location.h has
 * that of a location. It is read through getters that return defaults for unset
 * values. Unset is -1 or NULL; directives.c sets the values. */
#ifndef AGENT_CONFIG_H
#define AGENT_CONFIG_H

#include <stdbool.h>

#include <apr_hash.h>
#include <httpd.h>
#include <http_config.h>

#include "../core/egress.h"
#include "../core/generation.h"

/* Maximum of AgentMaxWaiters. */
#define AGENT_MAX_WAITERS 100000

typedef struct agent_server_config_t {
    const char *database;
    const char *node;
    /* AgentRegion, AgentWrongRegion and AgentRegionURL; see region.h. */
    const char *region;
    int wrong_region;
    apr_array_header_t *regions; /* of agent_region_t */
    /* See host.h. */
    bool has_platform, has_server;
    apr_hash_t *deployment_hosts;
    /* Of agent_published_address_t, see published_address.h. */
    apr_array_header_t *ingress_addresses;
    apr_array_header_t *egress_addresses;
    int address_serial;
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
    /* Headers of all hosts: agent_webhook_header_t. */
    apr_array_header_t *webhook_headers;
    apr_array_header_t
        *limits; /* of agent_account_limit_t, see account_limit.h */
    agent_generation_t generation;
    /* Of all hosts: agent_host_directive_t (unused_directive.h). */
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

/* AgentWebhookHeader of a host, as agent_webhook_secret_t. */
typedef struct agent_webhook_header_t {
    const server_rec *server;
    const char *name;
    /* May be a secret: never logged. */
    const char *value;
} agent_webhook_header_t;

/* For the module record: create configurations with all values unset, and merge
 * them; in pool. */
void *agent_config_create_server(apr_pool_t *pool, server_rec *server);
void *agent_config_merge_server(apr_pool_t *pool, void *base, void *add);

/* Returns the main server's configuration, borrowed until the next restart. */
agent_server_config_t *agent_config_server(const server_rec *server);

/* Overwrites the keys of models and webhooks, in httpd's children. Headers of
 * webhooks are not overwritten: httpd's own copy of the configuration has them
 * too. */
void agent_config_erase_keys(agent_server_config_t *config);

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

#endif
