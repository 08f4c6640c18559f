/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, merges and reads the configuration of the server; see config.h. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include <apr_strings.h>

#include "../private.h"
#include "account_limit.h"
#include "graph.h"
#include "published_address.h"
#include "region.h"
#include "unused_directive.h"

void *agent_config_create_server(apr_pool_t *pool, server_rec *server)
{
    agent_server_config_t *config = apr_pcalloc(pool, sizeof(*config));

    config->wrong_region = -1;
    config->regions = apr_array_make(pool, 2, sizeof(agent_region_t));
    config->ingress_addresses = apr_array_make(
        pool, 1, sizeof(agent_published_address_t));
    config->egress_addresses = apr_array_make(
        pool, 1, sizeof(agent_published_address_t));
    config->address_serial = -1;
    config->max_waiters = -1;
    config->waiters_per_address = -1;
    config->parking = -1;
    config->pool_size = -1;
    config->retention = -1;
    config->audit_retention = -1;
    config->log_retention = -1;
    config->backup_retention = -1;
    config->pool_wait = -1;
    config->query_timeout = -1;
    config->connect_timeout = -1;
    config->drain_timeout = -1;
    config->graphs = apr_array_make(pool, 2, sizeof(agent_graph_t *));
    config->webhooks = -1;
    config->webhook_timeout = -1;
    config->webhook_egress = agent_egress_make(pool);
    config->webhook_secrets = apr_array_make(pool, 1,
                                             sizeof(agent_webhook_secret_t));
    config->webhook_headers = apr_array_make(pool, 1,
                                             sizeof(agent_webhook_header_t));
    config->limits = apr_array_make(pool, 2, sizeof(agent_account_limit_t));
    agent_generation_begin(&config->generation);
    config->host_directives = apr_array_make(pool, 4,
                                             sizeof(agent_host_directive_t));
    return config;
}

/* Virtual hosts may declare graphs and secrets, which join those of the main
 * server. Other directives of the server are refused there. */
void *agent_config_merge_server(apr_pool_t *pool, void *base, void *add)
{
    const agent_server_config_t *main_server = base;
    const agent_server_config_t *host = add;

    apr_array_cat(main_server->graphs, host->graphs);
    apr_array_cat(main_server->webhook_secrets, host->webhook_secrets);
    apr_array_cat(main_server->webhook_headers, host->webhook_headers);
    apr_array_cat(main_server->host_directives, host->host_directives);
    return base;
}

agent_server_config_t *agent_config_server(const server_rec *server)
{
    return ap_get_module_config(server->module_config, &agent_module);
}

void agent_config_erase_keys(agent_server_config_t *config)
{
    for (int i = 0; i < config->graphs->nelts; i++) {
        agent_graph_t *graph = APR_ARRAY_IDX(config->graphs, i,
                                             agent_graph_t *);

        if (graph->key != NULL) {
            explicit_bzero(graph->key, strlen(graph->key));
        }
    }
    for (int i = 0; i < config->webhook_secrets->nelts; i++) {
        const agent_webhook_secret_t *secret = &APR_ARRAY_IDX(
            config->webhook_secrets, i, const agent_webhook_secret_t);

        explicit_bzero(secret->key, secret->length);
    }
}

const char *agent_config_node(const agent_server_config_t *config,
                              apr_pool_t *pool)
{
    char name[256];

    if (config->node != NULL) {
        return config->node;
    }
    if (gethostname(name, sizeof(name)) != 0) {
        return "localhost";
    }
    name[sizeof(name) - 1] = '\0';
    return apr_pstrdup(pool, name);
}

const char *agent_config_runner(const agent_server_config_t *config)
{
    return config->runner != NULL ? config->runner : AGENT_RUNNER_PATH;
}

const char *agent_config_cgroup(const agent_server_config_t *config)
{
    return config->cgroup;
}

bool agent_config_parking(const agent_server_config_t *config)
{
    return config->parking != 0;
}

int agent_config_pool_size(const agent_server_config_t *config, int dbd_max)
{
    return config->pool_size != -1 ? config->pool_size : dbd_max;
}

static int get_days(apr_interval_time_t value, int otherwise)
{
    return value != -1 ? (int)(value / apr_time_from_sec(24 * 3600))
                       : otherwise;
}

int agent_config_retention_days(const agent_server_config_t *config)
{
    return get_days(config->retention, 2);
}

int agent_config_audit_days(const agent_server_config_t *config)
{
    return get_days(config->audit_retention, 400);
}

int agent_config_log_days(const agent_server_config_t *config)
{
    return get_days(config->log_retention, -1);
}

int agent_config_backup_days(const agent_server_config_t *config)
{
    return get_days(config->backup_retention, -1);
}

static apr_interval_time_t get_time(apr_interval_time_t value,
                                    apr_interval_time_t unset_msec)
{
    return value != -1 ? value : apr_time_from_msec(unset_msec);
}

apr_interval_time_t agent_config_pool_wait(const agent_server_config_t *config)
{
    return get_time(config->pool_wait, 1000);
}

apr_interval_time_t agent_config_query_timeout(
    const agent_server_config_t *config)
{
    return get_time(config->query_timeout, 5000);
}

apr_interval_time_t agent_config_connect_timeout(
    const agent_server_config_t *config)
{
    return get_time(config->connect_timeout, 1500);
}

apr_interval_time_t agent_config_drain_timeout(
    const agent_server_config_t *config)
{
    return get_time(config->drain_timeout, 180 * 1000);
}

const agent_egress_t *agent_config_webhook_egress(
    const agent_server_config_t *config)
{
    return config->webhooks != 0 ? config->webhook_egress : NULL;
}

apr_interval_time_t agent_config_webhook_timeout(
    const agent_server_config_t *config)
{
    return get_time(config->webhook_timeout, 10 * 1000);
}
