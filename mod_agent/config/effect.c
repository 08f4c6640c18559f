/* SPDX-License-Identifier: Apache-2.0 */
/* Warns of directives without effect; see effect.h. They are not errors: other
 * servers of the database may have the graphs. */
#include "effect.h"

#include <string.h>

#include "../private.h"
#include "graph.h"

void agent_effect_note(cmd_parms *cmd, const char *deployment)
{
    agent_server_config_t *config = agent_config_server(cmd->server);
    agent_host_directive_t *own = apr_array_push(config->host_directives);

    own->server = cmd->server;
    own->directive = cmd->directive;
    own->deployment = deployment;
    own->is_in_section = cmd->path != NULL;
}

static const agent_host_directive_t *get(const agent_server_config_t *config,
                                         int i)
{
    return &APR_ARRAY_IDX(config->host_directives, i,
                          const agent_host_directive_t);
}

/* Whether an earlier directive names the same deployment. */
static bool is_repeated(const agent_server_config_t *config, int number)
{
    const char *name = get(config, number)->deployment;

    for (int i = 0; i < number; i++) {
        const char *earlier = get(config, i)->deployment;

        if (earlier != NULL && strcmp(earlier, name) == 0) {
            return true;
        }
    }
    return false;
}

static void warn_of_deployment(const agent_host_directive_t *own,
                               server_rec *server)
{
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                 AGENT_LOGNO(0444) "AgentDeployment: expected a deployment "
                                   "with an <AgentGraph>, got '%s' at %s:%d: "
                                   "only other servers of its database "
                                   "execute its runs%s",
                 own->deployment, own->directive->filename,
                 own->directive->line_num,
                 own->is_in_section
                     ? "; graphs belong to the deployment that their host "
                       "names outside of locations"
                     : "");
}

static bool has_graph(const agent_server_config_t *config,
                      const server_rec *server)
{
    for (int i = 0; i < config->graphs->nelts; i++) {
        const agent_graph_t *graph = APR_ARRAY_IDX(config->graphs, i,
                                                   const agent_graph_t *);

        if (graph->server == server) {
            return true;
        }
    }
    return false;
}

static void warn_of_runners(const agent_host_directive_t *own,
                            server_rec *server)
{
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                 AGENT_LOGNO(0445) "%s: expected in a host with an "
                                   "<AgentGraph>, got it without one at %s:%d: "
                                   "it has no effect",
                 own->directive->directive, own->directive->filename,
                 own->directive->line_num);
}

void agent_effect_check(const agent_server_config_t *config, server_rec *server)
{
    /* Bounded: the directives of the configuration, compared in pairs. */
    for (int i = 0; i < config->host_directives->nelts; i++) {
        const agent_host_directive_t *own = get(config, i);

        if (own->deployment == NULL) {
            /* All hosts inherit those of the main server. */
            if (own->server->is_virtual && !has_graph(config, own->server)) {
                warn_of_runners(own, server);
            }
        }
        else if (!agent_graph_has_deployment(config, own->deployment)
                 && !is_repeated(config, i)) {
            warn_of_deployment(own, server);
        }
    }
}
