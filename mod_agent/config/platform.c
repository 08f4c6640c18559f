/* SPDX-License-Identifier: Apache-2.0 */
/* Directives of platform hosts, and their values; see platform.h. */
#include "platform.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>

#include "../core/address.h"
#include "directives.h"
#include "value.h"

/* Two lists of eight, and room to replace them. */
#define EGRESS_MAX 64

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

agent_sign_up_t agent_config_sign_up(const agent_dir_config_t *config)
{
    return config->sign_up != AGENT_SIGN_UP_UNSET
        ? (agent_sign_up_t)config->sign_up
        : AGENT_SIGN_UP_OFF;
}

/* Whether the same address or block was named before. */
static bool is_named(const apr_array_header_t *addresses,
                     const agent_address_block_t *block)
{
    agent_address_block_t other;

    /* Bounded: EGRESS_MAX. */
    for (int i = 0; i < addresses->nelts; i++) {
        if (agent_address_read_block(&other,
                                     APR_ARRAY_IDX(addresses, i, const char *))
            && memcmp(&other, block, sizeof(other)) == 0) {
            return true;
        }
    }
    return false;
}

const char *agent_directive_egress_address(cmd_parms *cmd, void *dir,
                                           const char *arg)
{
    agent_address_block_t block = {.family = 0};
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);

    if (config == NULL) {
        return problem;
    }
    if (!agent_address_read_block(&block, arg)) {
        return apr_psprintf(cmd->pool,
                            "AgentEgressAddress: expected %s, got '%s'",
                            agent_address_expected(arg), arg);
    }
    if (config->egress_addresses->nelts == EGRESS_MAX
        || is_named(config->egress_addresses, &block)) {
        return apr_psprintf(cmd->pool,
                            "AgentEgressAddress: expected at most %d "
                            "addresses, each once, got '%s'",
                            EGRESS_MAX, arg);
    }
    APR_ARRAY_PUSH(config->egress_addresses, const char *) = arg;
    return NULL;
}

/* Addresses need no escapes. */
const char *agent_platform_print_egress(const agent_server_config_t *config,
                                        apr_pool_t *pool)
{
    const char *list = "";

    /* Bounded: EGRESS_MAX. */
    for (int i = 0; i < config->egress_addresses->nelts; i++) {
        list = apr_pstrcat(
            pool, list, i > 0 ? ",\"" : "\"",
            APR_ARRAY_IDX(config->egress_addresses, i, const char *), "\"",
            NULL);
    }
    return list;
}
