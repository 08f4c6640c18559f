/* SPDX-License-Identifier: Apache-2.0 */
/* Directives of platform hosts, and their values; see platform.h. */
#include "platform.h"

#include <strings.h>

#include <apr_strings.h>

#include "directives.h"
#include "value.h"

const char *agent_directive_sign_up(cmd_parms *cmd, void *dir, const char *arg)
{
    static const struct {
        const char *word;
        agent_sign_up_t value;
    } words[] = {{"Off", AGENT_SIGN_UP_OFF},
                 {"On", AGENT_SIGN_UP_ON},
                 {"Invitation", AGENT_SIGN_UP_INVITATION}};
    agent_dir_config_t *config = dir;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(arg, words[i].word) == 0) {
            config->sign_up = words[i].value;
            return NULL;
        }
    }
    return apr_psprintf(cmd->pool,
                        "AgentSignUp: expected Off, On or Invitation, got '%s'",
                        arg);
}

agent_sign_up_t agent_platform_sign_up(const agent_dir_config_t *config)
{
    return config->sign_up != AGENT_SIGN_UP_UNSET
        ? (agent_sign_up_t)config->sign_up
        : AGENT_SIGN_UP_OFF;
}
