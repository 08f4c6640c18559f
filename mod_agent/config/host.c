/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of hosts; see host.h. */
#include "host.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../private.h"
#include "conftree.h"

/* Where the configuration sets the handler `name`. hosts: the <VirtualHost>s
 * with it, by their positions in the files. */
typedef struct handler_t {
    const char *name;
    apr_hash_t *hosts;
    /* Outside of virtual hosts, which inherit it. */
    bool is_in_main;
    bool is_found;
    apr_pool_t *pool;
} handler_t;

/* Of the hosts that only have deployments. */
typedef struct host_key_t {
    const server_rec *host;
} host_key_t;

static const char *print_place(const char *file, int line, apr_pool_t *pool)
{
    return apr_psprintf(pool, "%s:%d", file, line);
}

static void find_handler(const ap_directive_t *directive, void *baton)
{
    handler_t *handler = baton;
    const char *args = directive->args;
    const ap_directive_t *host = directive->parent;

    if (ap_cstr_casecmp(ap_getword_conf(handler->pool, &args), handler->name)
        != 0) {
        return;
    }
    while (host != NULL && strcasecmp(host->directive, "<VirtualHost") != 0) {
        host = host->parent;
    }
    handler->is_found = true;
    if (host == NULL) {
        handler->is_in_main = true;
        return;
    }
    apr_hash_set(handler->hosts,
                 print_place(host->filename, host->line_num, handler->pool),
                 APR_HASH_KEY_STRING, handler);
}

static handler_t find(const char *name, apr_pool_t *pool)
{
    handler_t handler = {
        .name = name, .hosts = apr_hash_make(pool), .pool = pool};

    agent_conftree_visit("SetHandler", find_handler, &handler);
    return handler;
}

/* Whether the host itself has the handler; the main server's section is the
 * rest of the file. */
static bool has(const handler_t *handler, const server_rec *host)
{
    return host->is_virtual
        ? apr_hash_get(handler->hosts,
                       print_place(host->defn_name, (int)host->defn_line_number,
                                   handler->pool),
                       APR_HASH_KEY_STRING)
            != NULL
        : handler->is_in_main;
}

/* A virtual host with a handler of its own replaces that of the main server. */
static bool has_deployments_only(const handler_t *agent,
                                 const handler_t *platform,
                                 const server_rec *host)
{
    bool has_agent = has(agent, host);

    return !has(platform, host)
        && (has_agent || (agent->is_in_main && !platform->is_in_main));
}

void agent_host_find_handlers(agent_server_config_t *config,
                              const server_rec *server, apr_pool_t *pool)
{
    handler_t platform = find(AGENT_PLATFORM_HANDLER, pool);
    handler_t agent = find(AGENT_SERVER_HANDLER, pool);

    config->has_platform = platform.is_found;
    config->has_server = agent.is_found;
    config->deployment_hosts = apr_hash_make(pool);
    for (const server_rec *host = server; host != NULL; host = host->next) {
        const host_key_t key = {host};

        if (has_deployments_only(&agent, &platform, host)) {
            apr_hash_set(config->deployment_hosts,
                         apr_pmemdup(pool, &key, sizeof(key)), sizeof(key),
                         config);
        }
    }
}

bool agent_host_is_any(const agent_server_config_t *config)
{
    return config->graphs->nelts > 0 || config->has_platform
        || config->has_server;
}

bool agent_host_has_deployments_only(const agent_server_config_t *config,
                                     const server_rec *host)
{
    const host_key_t key = {host};

    return apr_hash_get(config->deployment_hosts, &key, sizeof(key)) != NULL;
}
