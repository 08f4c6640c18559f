/* SPDX-License-Identifier: Apache-2.0 */
/* The module's directives; conf/agent.conf explains each. */
#ifndef AGENT_DIRECTIVES_H
#define AGENT_DIRECTIVES_H

#include <httpd.h>
#include <http_config.h>

/* Directives of the server and of locations, for the module record. */
extern const command_rec agent_directives[];

/*
 * Inside <AgentGraph>; each stores into the graph that is being read.
 */
const char *agent_directive_graph(cmd_parms *cmd, void *dir, const char *args);
const char *agent_directive_model(cmd_parms *cmd, void *dir, const char *arg);
const char *agent_directive_model_url(cmd_parms *cmd, void *dir,
                                      const char *arg);
const char *agent_directive_model_key(cmd_parms *cmd, void *dir,
                                      const char *arg);
const char *agent_directive_model_timeout(cmd_parms *cmd, void *dir,
                                          const char *arg);
const char *agent_directive_max_tokens(cmd_parms *cmd, void *dir,
                                       const char *arg);
const char *agent_directive_system_prompt(cmd_parms *cmd, void *dir,
                                          const char *arg);
const char *agent_directive_max_steps(cmd_parms *cmd, void *dir,
                                      const char *arg);
const char *agent_directive_tool(cmd_parms *cmd, void *dir, int argc,
                                 char *const argv[]);

/* What webhooks are signed with, and where they may go. */
const char *agent_directive_webhook_secret(cmd_parms *cmd, void *dir,
                                           const char *arg);
const char *agent_directive_webhook_allow(cmd_parms *cmd, void *dir,
                                          const char *arg);
const char *agent_directive_webhook_deny(cmd_parms *cmd, void *dir,
                                         const char *arg);
const char *agent_directive_webhook_ports(cmd_parms *cmd, void *dir,
                                          const char *arg);

/*
 * The text of a file of fewer than limit bytes, in cmd->pool; NULL and a
 * sentence for httpd in *problem when it cannot be read.
 */
char *agent_directive_read_file(const char **problem, cmd_parms *cmd,
                                const char *path, apr_size_t limit);

/* Overwrites the bytes when pool ends: at a restart its memory is used again,
 * and goes to children as it is. */
void agent_directive_forget(void *bytes, apr_size_t length, apr_pool_t *pool);

/*
 * Reads a whole number from low to high; returns the sentence for httpd, or
 * NULL when *out is set.
 */
const char *agent_directive_number(apr_int64_t *out, cmd_parms *cmd,
                                   const char *arg, apr_int64_t low,
                                   apr_int64_t high);

#endif
