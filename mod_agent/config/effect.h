/* SPDX-License-Identifier: Apache-2.0 */
/* Directives whose values are valid, but which have no effect, or not the one
 * that they seem to have, for lack of graphs. */
#ifndef AGENT_CONFIG_EFFECT_H
#define AGENT_CONFIG_EFFECT_H

#include "config.h"

/* Remembers a directive for agent_effect_check(). deployment: the value of an
 * AgentDeployment; NULL: a directive of runners. */
void agent_effect_note(cmd_parms *cmd, const char *deployment);

/* Warns of each deployment that is served but has no graph on this server, and
 * of each directive of runners in a virtual host without graphs; once the
 * deployments of graphs are set. */
void agent_effect_check(const agent_server_config_t *config,
                        server_rec *server);

#endif
