/* SPDX-License-Identifier: Apache-2.0 */
/* The module's directives; conf/agent.conf explains each. */
#ifndef AGENT_DIRECTIVES_H
#define AGENT_DIRECTIVES_H

#include <httpd.h>
#include <http_config.h>

#include "config.h"

/* All directives, for the module record. */
extern const command_rec agent_directives[];

/* directives_graph.c: <AgentGraph>, and the directives inside it. */
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

/* directives_application.c: AgentApplication, and the programs of its runners.
 */
const char *agent_directive_application(cmd_parms *cmd, void *dir,
                                        const char *name, const char *directory,
                                        const char *option);
const char *agent_directive_python(cmd_parms *cmd, void *dir, const char *arg);
const char *agent_directive_node(cmd_parms *cmd, void *dir, const char *arg);

/* directives_runner.c: settings of the runners of a host's deployment. */
const char *agent_directive_runner_user(cmd_parms *cmd, void *dir,
                                        const char *arg);
const char *agent_directive_runners(cmd_parms *cmd, void *dir, const char *arg);
const char *agent_directive_runner_slots(cmd_parms *cmd, void *dir,
                                         const char *arg);
const char *agent_directive_runner_memory(cmd_parms *cmd, void *dir,
                                          const char *arg);
const char *agent_directive_runner_max_runs(cmd_parms *cmd, void *dir,
                                            const char *arg);
const char *agent_directive_runner_recycle_memory(cmd_parms *cmd, void *dir,
                                                  const char *arg);
const char *agent_directive_runner_files(cmd_parms *cmd, void *dir,
                                         const char *arg);
const char *agent_directive_runner_processes(cmd_parms *cmd, void *dir,
                                             const char *arg);
const char *agent_directive_pool_memory(cmd_parms *cmd, void *dir,
                                        const char *arg);
const char *agent_directive_pool_processes(cmd_parms *cmd, void *dir,
                                           const char *arg);
const char *agent_directive_pool_cpu(cmd_parms *cmd, void *dir,
                                     const char *arg);
const char *agent_directive_runner_idle_time(cmd_parms *cmd, void *dir,
                                             const char *arg);
const char *agent_directive_run_timeout(cmd_parms *cmd, void *dir,
                                        const char *arg);
const char *agent_directive_runner_busy_timeout(cmd_parms *cmd, void *dir,
                                                const char *arg);

/* directives_location.c: how long threads and items are kept, and headers for
 * graphs. */
const char *agent_directive_deployment(cmd_parms *cmd, void *dir,
                                       const char *name, const char *account);
const char *agent_directive_trust(cmd_parms *cmd, void *dir, const char *arg);
const char *agent_directive_thread_ttl(cmd_parms *cmd, void *dir,
                                       const char *arg);
const char *agent_directive_store_ttl(cmd_parms *cmd, void *dir,
                                      const char *arg);
const char *agent_directive_origin(cmd_parms *cmd, void *dir, const char *arg);
const char *agent_directive_origin_match(cmd_parms *cmd, void *dir,
                                         const char *arg);
const char *agent_directive_headers(cmd_parms *cmd, void *dir, const char *arg);

/* directives_limit.c: the limits of accounts. */
const char *agent_directive_limit(cmd_parms *cmd, void *dir, const char *name,
                                  const char *value, const char *account);

/* directives_webhook.c: the directives of webhooks that need a check of their
 * own. */
const char *agent_directive_webhook_secret(cmd_parms *cmd, void *dir,
                                           const char *arg);
const char *agent_directive_webhook_header(cmd_parms *cmd, void *dir,
                                           const char *name, const char *value);
/* Returns an error message, in pool, when a deployment has two secrets, or two
 * values of a header. For the whole configuration. */
const char *agent_directive_check_webhooks(const agent_server_config_t *config,
                                           apr_pool_t *pool);
const char *agent_directive_webhook_allow(cmd_parms *cmd, void *dir,
                                          const char *arg);
const char *agent_directive_webhook_deny(cmd_parms *cmd, void *dir,
                                         const char *arg);
const char *agent_directive_webhook_ports(cmd_parms *cmd, void *dir,
                                          const char *arg);
const char *agent_directive_webhook_origin(cmd_parms *cmd, void *dir,
                                           const char *arg);

/* platform.c */
const char *agent_directive_sign_up(cmd_parms *cmd, void *dir, const char *arg);

/* published_address.c: cmd->info is the list */
const char *agent_directive_addresses(cmd_parms *cmd, void *dir,
                                      const char *line);

#endif
