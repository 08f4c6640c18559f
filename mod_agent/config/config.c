/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, merges and reads the configuration; see config.h. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include <apr_strings.h>
#include <ap_expr.h>
#include <http_core.h>

#include "../core/deployment.h"
#include "../core/word.h"
#include "../private.h"
#include "effect.h"
#include "graph.h"
#include "limit.h"
#include "region.h"

#define DEFAULT_MAX_BODY (4 * 1024 * 1024)

#define PICK(field, unset)                                                     \
    merged->field = add->field != (unset) ? add->field : base->field

void *agent_config_create_server(apr_pool_t *pool, server_rec *server)
{
    agent_server_config_t *config = apr_pcalloc(pool, sizeof(*config));

    config->wrong_region = -1;
    config->regions = apr_array_make(pool, 2, sizeof(agent_region_t));
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
    config->limits = apr_array_make(pool, 2, sizeof(agent_account_limit_t));
    config->configured_at = apr_time_now();
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
    apr_array_cat(main_server->host_directives, host->host_directives);
    return base;
}

static void unset_runner(agent_runner_settings_t *settings)
{
    settings->runners = -1;
    settings->slots = -1;
    settings->memory = -1;
    settings->max_runs = -1;
    settings->recycle_memory = -1;
    settings->files = -1;
    settings->processes = -1;
    settings->pool_memory = -1;
    settings->pool_processes = -1;
    settings->pool_cpu = -1;
    settings->busy_timeout = -1;
    settings->idle_time = -1;
    settings->run_timeout = -1;
    settings->store_ttl = -1;
}

static void merge_runner(agent_runner_settings_t *merged,
                         const agent_runner_settings_t *base,
                         const agent_runner_settings_t *add)
{
    PICK(user, NULL);
    PICK(python, NULL);
    PICK(node, NULL);
    PICK(runners, -1);
    PICK(slots, -1);
    PICK(memory, -1);
    PICK(max_runs, -1);
    PICK(recycle_memory, -1);
    PICK(files, -1);
    PICK(processes, -1);
    PICK(pool_memory, -1);
    PICK(pool_processes, -1);
    PICK(pool_cpu, -1);
    PICK(busy_timeout, -1);
    PICK(idle_time, -1);
    PICK(run_timeout, -1);
    PICK(store_ttl, -1);
}

void *agent_config_create_dir(apr_pool_t *pool, char *path)
{
    agent_dir_config_t *config = apr_pcalloc(pool, sizeof(*config));

    unset_runner(&config->runner);
    config->max_body = -1;
    config->call_timeout = -1;
    config->thread_ttl = -1;
    return config;
}

void *agent_config_merge_dir(apr_pool_t *pool, void *base_config,
                             void *add_config)
{
    const agent_dir_config_t *base = base_config;
    const agent_dir_config_t *add = add_config;
    agent_dir_config_t *merged = apr_pcalloc(pool, sizeof(*merged));

    merge_runner(&merged->runner, &base->runner, &add->runner);
    PICK(deployment, NULL);
    PICK(prefix, NULL);
    PICK(multitask_default, NULL);
    PICK(max_body, -1);
    PICK(call_timeout, -1);
    PICK(thread_ttl, -1);
    PICK(feedback_url, NULL);
    PICK(origins, NULL);
    PICK(headers, NULL);
    PICK(trusted, NULL);
    PICK(sign_up, 0);
    return merged;
}

agent_server_config_t *agent_config_server(const server_rec *server)
{
    return ap_get_module_config(server->module_config, &agent_module);
}

const agent_dir_config_t *agent_config_host(const server_rec *server)
{
    return ap_get_module_config(server->lookup_defaults, &agent_module);
}

const char *agent_config_host_deployment(const server_rec *server)
{
    return agent_config_deployment(agent_config_host(server));
}

void agent_config_forget_keys(agent_server_config_t *config)
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

const agent_dir_config_t *agent_config_dir(const request_rec *r)
{
    return ap_get_module_config(r->per_dir_config, &agent_module);
}

const char *agent_config_handler(request_rec *r)
{
    const core_dir_config *core = ap_get_core_module_config(r->per_dir_config);
    const char *problem = NULL;
    const char *handler;

    if (core->expr_handler == NULL) {
        return core->handler;
    }
    handler = ap_expr_str_exec(r, core->expr_handler, &problem);
    return problem == NULL ? handler : NULL;
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

const char *agent_config_deployment(const agent_dir_config_t *config)
{
    return config->deployment != NULL ? config->deployment
                                      : AGENT_DEPLOYMENT_NAME;
}

const char *agent_config_prefix(const agent_dir_config_t *config)
{
    return config->prefix != NULL ? config->prefix : "";
}

const char *agent_config_multitask(const agent_dir_config_t *config)
{
    return config->multitask_default != NULL ? config->multitask_default
                                             : agent_word_strategies[0];
}

apr_size_t agent_config_max_body(const agent_dir_config_t *config)
{
    return config->max_body != -1 ? (apr_size_t)config->max_body
                                  : DEFAULT_MAX_BODY;
}

apr_interval_time_t agent_config_call_timeout(const agent_dir_config_t *config)
{
    return get_time(config->call_timeout, 10 * 1000);
}

apr_interval_time_t agent_config_thread_ttl(const agent_dir_config_t *config)
{
    return get_time(config->thread_ttl, 0);
}

apr_interval_time_t agent_config_store_ttl(const agent_dir_config_t *config)
{
    return get_time(config->runner.store_ttl, 0);
}

const char *agent_config_feedback_url(const agent_dir_config_t *config)
{
    return config->feedback_url == NULL || config->feedback_url[0] == '\0'
        ? NULL
        : config->feedback_url;
}

const apr_array_header_t *agent_config_origins(const agent_dir_config_t *config)
{
    return apr_is_empty_array(config->origins) ? NULL : config->origins;
}

const apr_array_header_t *agent_config_headers(const agent_dir_config_t *config)
{
    return apr_is_empty_array(config->headers) ? NULL : config->headers;
}

const apr_array_header_t *agent_config_trusted(const agent_dir_config_t *config)
{
    return apr_is_empty_array(config->trusted) ? NULL : config->trusted;
}
