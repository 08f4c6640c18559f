/* SPDX-License-Identifier: Apache-2.0 */
/* The directives of webhooks; see directives.h. */
#include "config.h"
#include "directives.h"
#include "file.h"
#include "value.h"

#include <string.h>

#include <apr_encode.h>
#include <apr_strings.h>

#include "../private.h"

#define MAX_SECRET_FILE 4096
/* Standard Webhooks: a secret of 24 to 64 bytes, in base64. */
#define SECRET_PREFIX "whsec_"
#define SECRET_LEAST  24
#define SECRET_MOST   64

const char *agent_directive_webhook_secret(cmd_parms *cmd, void *dir,
                                           const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);
    char *text;

    if (config == NULL) {
        return problem;
    }
    text = agent_file_read(&problem, cmd, arg, MAX_SECRET_FILE);
    if (text == NULL) {
        return problem;
    }
    text[strcspn(text, "\r\n")] = '\0';
    if (strncmp(text, SECRET_PREFIX, strlen(SECRET_PREFIX)) == 0) {
        text += strlen(SECRET_PREFIX);
    }
    config->webhook_key = (unsigned char *)apr_pdecode_base64_binary(
        cmd->pool, text, APR_ENCODE_STRING, APR_ENCODE_NONE,
        &config->webhook_key_length);
    explicit_bzero(text, strlen(text));
    if (config->webhook_key == NULL || config->webhook_key_length < SECRET_LEAST
        || config->webhook_key_length > SECRET_MOST) {
        /* The given text may be a secret: it is not repeated. */
        return apr_psprintf(cmd->pool,
                            "AgentWebhookSecretFile: expected " SECRET_PREFIX
                            " and %d to %d bytes in base64 in the first line, "
                            "got another text in '%s'",
                            SECRET_LEAST, SECRET_MOST, arg);
    }
    agent_file_erase_with_pool(config->webhook_key, config->webhook_key_length,
                               cmd->pool);
    return NULL;
}

const char *agent_directive_webhook_allow(cmd_parms *cmd, void *dir,
                                          const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config != NULL && !agent_egress_allow(config->webhook_egress, arg)) {
        problem = apr_psprintf(cmd->pool,
                               "AgentWebhookAllow: expected %s, or a host "
                               "name, got '%s'",
                               agent_egress_expected(arg, true), arg);
    }
    return problem;
}

const char *agent_directive_webhook_deny(cmd_parms *cmd, void *dir,
                                         const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config != NULL && !agent_egress_deny(config->webhook_egress, arg)) {
        problem = apr_psprintf(cmd->pool,
                               "AgentWebhookDeny: expected %s, got '%s'",
                               agent_egress_expected(arg, false), arg);
    }
    return problem;
}

const char *agent_directive_webhook_ports(cmd_parms *cmd, void *dir,
                                          const char *arg)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config != NULL
        && !agent_egress_allow_ports(config->webhook_egress, arg)) {
        problem = apr_psprintf(cmd->pool,
                               "AgentWebhookPorts: expected ports from 1 to "
                               "65535, like 8080 or 8000-8999, got '%s'",
                               arg);
    }
    return problem;
}
