/* SPDX-License-Identifier: Apache-2.0 */
/* Warns of directives without effect; see unused_directive.h. They are not
 * errors: other servers of the database may have the graphs. */
#include "unused_directive.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../core/deployment.h"
#include "../core/identity.h"
#include "../private.h"
#include "conftree.h"
#include "dbd.h"
#include "graph.h"

void agent_unused_directive_record(cmd_parms *cmd, const char *deployment)
{
    agent_server_config_t *config = agent_config_server(cmd->server);
    agent_host_directive_t *entry = apr_array_push(config->host_directives);

    entry->server = cmd->server;
    entry->directive = cmd->directive;
    entry->deployment = deployment;
    entry->is_in_section = cmd->path != NULL;
}

static const agent_host_directive_t *get(const agent_server_config_t *config,
                                         int i)
{
    return &APR_ARRAY_IDX(config->host_directives, i,
                          const agent_host_directive_t);
}

static const ap_directive_t *find_in_host(const agent_server_config_t *config,
                                          const server_rec *host, bool is_main,
                                          const char *name)
{
    const ap_directive_t *found = NULL;

    for (int i = 0; i < config->host_directives->nelts; i++) {
        const agent_host_directive_t *entry = get(config, i);

        if (strcasecmp(entry->directive->directive, name) == 0
            && (is_main ? !entry->server->is_virtual : entry->server == host)) {
            found = entry->directive;
        }
    }
    return found;
}

const ap_directive_t *agent_unused_directive_find(
    const agent_server_config_t *config, const server_rec *host,
    const char *name)
{
    const ap_directive_t *own = find_in_host(config, host, false, name);

    return own != NULL ? own : find_in_host(config, host, true, name);
}

/* Whether it names that deployment. */
static bool names(const agent_host_directive_t *entry, const char *deployment)
{
    return entry->deployment != NULL
        && strcmp(entry->deployment, deployment) == 0;
}

/* Whether an earlier directive names the same deployment. */
static bool is_repeated(const agent_server_config_t *config, int number)
{
    for (int i = 0; i < number; i++) {
        if (names(get(config, i), get(config, number)->deployment)) {
            return true;
        }
    }
    return false;
}

/* Where the deployment is named, from that entry on. */
static const char *print_lines(const agent_server_config_t *config, int number,
                               apr_pool_t *pool)
{
    const char *deployment = get(config, number)->deployment;
    apr_array_header_t *lines = apr_array_make(pool, 2, sizeof(const char *));

    /* Bounded: the directives of the configuration. */
    for (int i = number; i < config->host_directives->nelts; i++) {
        const ap_directive_t *directive = get(config, i)->directive;

        if (names(get(config, i), deployment)) {
            APR_ARRAY_PUSH(lines, const char *) = apr_psprintf(
                pool, "%s%s:%d", i == number ? "" : ", ", directive->filename,
                directive->line_num);
        }
    }
    return apr_array_pstrcat(pool, lines, '\0');
}

static void warn_of_deployment(const agent_server_config_t *config, int number,
                               server_rec *server, apr_pool_t *pool)
{
    const agent_host_directive_t *entry = get(config, number);

    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                 AGENT_LOGNO(0444) "AgentDeployment: expected a deployment "
                                   "with a graph, got '%s' at %s: "
                                   "only other servers of its database "
                                   "execute its runs%s",
                 entry->deployment, print_lines(config, number, pool),
                 entry->is_in_section
                     ? "; graphs belong to the deployment that their host "
                       "names outside of locations"
                     : "");
}

static void warn_of_account(const agent_host_directive_t *entry,
                            server_rec *server)
{
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                 AGENT_LOGNO(0450) "AgentDeployment: expected AuthType %s "
                                   "beside account=, got a host without it at "
                                   "%s:%d: it answers 401",
                 AGENT_AUTH_TYPE, entry->directive->filename,
                 entry->directive->line_num);
}

static void check_account(const agent_host_directive_t *entry,
                          server_rec *server)
{
    if (agent_deployment_account(entry->deployment) != NULL
        && !agent_conftree_host_has_word(entry->directive, "AuthType",
                                         AGENT_AUTH_TYPE)) {
        warn_of_account(entry, server);
    }
}

static void check_keys(const agent_server_config_t *config, server_rec *server,
                       apr_pool_t *pool)
{
    const char *problem = agent_dbd_check(config, pool);

    if (problem != NULL
        && agent_conftree_has_word("AuthType", AGENT_AUTH_TYPE)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     AGENT_LOGNO(0451) "AuthType %s: expected a database of "
                                       "keys, got none: each key is answered "
                                       "503: %s",
                     AGENT_AUTH_TYPE, problem);
    }
}

static bool has_graph(const agent_server_config_t *config,
                      const server_rec *server)
{
    for (int i = 0; i < config->graphs->nelts; i++) {
        if (agent_graph_get(config, i)->server == server) {
            return true;
        }
    }
    return false;
}

static void warn_of_runners(const agent_host_directive_t *entry,
                            server_rec *server)
{
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                 AGENT_LOGNO(0445) "%s: expected in a host with a graph, "
                                   "got it without one at %s:%d: it has no "
                                   "effect",
                 entry->directive->directive, entry->directive->filename,
                 entry->directive->line_num);
}

const apr_array_header_t *agent_unused_directive_list_deployments(
    const agent_server_config_t *config, apr_pool_t *pool)
{
    apr_array_header_t *list = apr_array_make(pool, 4, sizeof(const char *));

    for (int i = 0; i < config->host_directives->nelts; i++) {
        const char *deployment = get(config, i)->deployment;

        if (deployment != NULL && !is_repeated(config, i)) {
            APR_ARRAY_PUSH(list, const char *) = deployment;
        }
    }
    return list;
}

void agent_unused_directive_check(const agent_server_config_t *config,
                                  server_rec *server, apr_pool_t *pool)
{
    check_keys(config, server, pool);
    /* Bounded: the directives of the configuration, compared in pairs. */
    for (int i = 0; i < config->host_directives->nelts; i++) {
        const agent_host_directive_t *entry = get(config, i);

        if (entry->deployment == NULL) {
            /* All hosts inherit those of the main server. */
            if (entry->server->is_virtual
                && !has_graph(config, entry->server)) {
                warn_of_runners(entry, server);
            }
        }
        else {
            check_account(entry, server);
            if (!agent_graph_has_deployment(config, entry->deployment)
                && !is_repeated(config, i)) {
                warn_of_deployment(config, i, server, pool);
            }
        }
    }
}
