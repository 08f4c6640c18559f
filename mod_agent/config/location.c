/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, merges and reads the configuration of a location; see location.h. */
#include "location.h"

#include <string.h>

#include <ap_expr.h>
#include <http_core.h>

#include "../core/deployment.h"
#include "../core/word.h"
#include "../private.h"

#define DEFAULT_MAX_BODY (4 * 1024 * 1024)

#define PICK(field, unset)                                                     \
    merged->field = add->field != (unset) ? add->field : base->field

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

void *agent_location_create_dir(apr_pool_t *pool, char *path)
{
    agent_dir_config_t *config = apr_pcalloc(pool, sizeof(*config));

    unset_runner(&config->runner);
    config->max_body = -1;
    config->call_timeout = -1;
    config->thread_ttl = -1;
    return config;
}

void *agent_location_merge_dir(apr_pool_t *pool, void *base_config,
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
    PICK(origin_match, NULL);
    PICK(headers, NULL);
    PICK(trusted, NULL);
    PICK(sign_up, 0);
    return merged;
}

const agent_dir_config_t *agent_location_host(const server_rec *server)
{
    return ap_get_module_config(server->lookup_defaults, &agent_module);
}

const char *agent_location_host_deployment(const server_rec *server)
{
    return agent_location_deployment(agent_location_host(server));
}

const agent_dir_config_t *agent_location_dir(const request_rec *r)
{
    return ap_get_module_config(r->per_dir_config, &agent_module);
}

/* SetHandler of a section; it is an expression, also as a word. */
static const char *read_handler(request_rec *r, const core_dir_config *core)
{
    const char *problem = NULL;
    const char *handler;

    if (core->expr_handler == NULL) {
        return core->handler;
    }
    handler = ap_expr_str_exec(r, core->expr_handler, &problem);
    return problem == NULL ? handler : NULL;
}

const char *agent_location_handler(request_rec *r)
{
    return read_handler(r, ap_get_core_module_config(r->per_dir_config));
}

static bool has_handler(request_rec *r, const ap_conf_vector_t *section,
                        const char *name);

static bool any_has_handler(request_rec *r, const apr_array_header_t *sections,
                            const char *name)
{
    for (int i = 0; sections != NULL && i < sections->nelts; i++) {
        if (has_handler(r, APR_ARRAY_IDX(sections, i, const ap_conf_vector_t *),
                        name)) {
            return true;
        }
    }
    return false;
}

/* Also in the <Files> and <If> of the section. */
static bool has_handler(request_rec *r, const ap_conf_vector_t *section,
                        const char *name)
{
    const core_dir_config *core = ap_get_core_module_config(section);
    const char *handler = read_handler(r, core);

    return (handler != NULL && strcmp(handler, name) == 0)
        || any_has_handler(r, core->sec_file, name)
        || any_has_handler(r, core->sec_if, name);
}

bool agent_location_host_has_handler(request_rec *r, const char *name)
{
    const core_server_config *core = ap_get_core_module_config(
        r->server->module_config);

    return has_handler(r, r->server->lookup_defaults, name)
        || any_has_handler(r, core->sec_url, name)
        || any_has_handler(r, core->sec_dir, name);
}

const char *agent_location_deployment(const agent_dir_config_t *config)
{
    return config->deployment != NULL ? config->deployment
                                      : AGENT_DEPLOYMENT_NAME;
}

const char *agent_location_prefix(const agent_dir_config_t *config)
{
    return config->prefix != NULL ? config->prefix : "";
}

const char *agent_location_multitask(const agent_dir_config_t *config)
{
    return config->multitask_default != NULL ? config->multitask_default
                                             : agent_word_strategies[0];
}

apr_size_t agent_location_max_body(const agent_dir_config_t *config)
{
    return config->max_body != -1 ? (apr_size_t)config->max_body
                                  : DEFAULT_MAX_BODY;
}

apr_interval_time_t agent_location_call_timeout(
    const agent_dir_config_t *config)
{
    return config->call_timeout != -1 ? config->call_timeout
                                      : apr_time_from_sec(10);
}

apr_interval_time_t agent_location_thread_ttl(const agent_dir_config_t *config)
{
    return config->thread_ttl != -1 ? config->thread_ttl : 0;
}

apr_interval_time_t agent_location_store_ttl(const agent_dir_config_t *config)
{
    return config->runner.store_ttl != -1 ? config->runner.store_ttl : 0;
}

const char *agent_location_feedback_url(const agent_dir_config_t *config)
{
    return config->feedback_url == NULL || config->feedback_url[0] == '\0'
        ? NULL
        : config->feedback_url;
}

const apr_array_header_t *agent_location_origins(
    const agent_dir_config_t *config)
{
    return apr_is_empty_array(config->origins) ? NULL : config->origins;
}

const ap_regex_t *agent_location_origin_match(const agent_dir_config_t *config)
{
    return apr_is_empty_array(config->origin_match)
        ? NULL
        : APR_ARRAY_IDX(config->origin_match, 0, const ap_regex_t *);
}

const apr_array_header_t *agent_location_headers(
    const agent_dir_config_t *config)
{
    return apr_is_empty_array(config->headers) ? NULL : config->headers;
}

const apr_array_header_t *agent_location_trusted(
    const agent_dir_config_t *config)
{
    return apr_is_empty_array(config->trusted) ? NULL : config->trusted;
}
