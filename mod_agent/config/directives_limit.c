/* SPDX-License-Identifier: Apache-2.0 */
/* AgentLimit: the limits of accounts. */
#include "directives.h"

#include <apr_strings.h>

#include "account_limit.h"
#include "value.h"

/* NULL: limit->value is the number, that of bytes with or without a unit, or
 * NONE. */
static const char *read_value(agent_account_limit_t *limit, cmd_parms *cmd,
                              const char *value)
{
    static const agent_size_range_t bytes = {.low = 0,
                                             .high = AGENT_LIMIT_MAX_BYTES,
                                             .low_text = "0",
                                             .high_text = "1000000G"};
    const char *problem;

    if (ap_cstr_casecmp(value, "none") == 0) {
        limit->value = AGENT_LIMIT_NONE;
        return NULL;
    }
    problem = limit->name == AGENT_LIMIT_STORED_BYTES
        ? agent_value_size(&limit->value, cmd, value, &bytes)
        : agent_value_number(&limit->value, cmd, value, 0, AGENT_LIMIT_MAX);
    return problem != NULL ? apr_pstrcat(cmd->pool, problem, " for ",
                                         agent_limit_word(limit->name),
                                         "; `none` removes a limit", NULL)
                           : NULL;
}

const char *agent_directive_limit(cmd_parms *cmd, void *dir, const char *name,
                                  const char *value, const char *account)
{
    const char *problem;
    agent_server_config_t *config = agent_value_server(&problem, cmd);
    agent_account_limit_t limit;

    if (config == NULL) {
        return problem;
    }
    if (!agent_limit_find(&limit.name, name)) {
        return apr_psprintf(cmd->pool,
                            "AgentLimit: expected one of %s, and then its "
                            "value, a number or none, got '%s'",
                            agent_limit_list_words(cmd->pool), name);
    }
    problem = read_value(&limit, cmd, value);
    if (problem == NULL) {
        problem = agent_value_account(&limit.account_id, cmd, account, "value");
    }
    if (problem == NULL
        && agent_account_limit_find(config, limit.name, limit.account_id)
            != NULL) {
        return apr_psprintf(cmd->pool,
                            "AgentLimit: expected each limit of an account "
                            "once, got '%s' again",
                            name);
    }
    if (problem == NULL) {
        APR_ARRAY_PUSH(config->limits, agent_account_limit_t) = limit;
    }
    return problem;
}
