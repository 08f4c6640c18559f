/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of accounts that AgentLimit sets. */
#ifndef AGENT_CONFIG_ACCOUNT_LIMIT_H
#define AGENT_CONFIG_ACCOUNT_LIMIT_H

#include "../core/limit.h"
#include "config.h"

/* The largest value of a limit, the largest one of stored_bytes, and the value
 * that means no limit. */
#define AGENT_LIMIT_MAX       1000000000
#define AGENT_LIMIT_MAX_BYTES (APR_INT64_C(1000000) << 30)
#define AGENT_LIMIT_NONE      (-1)

/* An AgentLimit. account_id NULL: for all accounts without one of their own. */
typedef struct agent_account_limit_t {
    agent_limit_name_t name;
    const char *account_id;
    apr_int64_t value;
} agent_account_limit_t;

/* Returns the limit that applies to an account (NULL: the built-in one), or
 * AGENT_LIMIT_NONE. */
apr_int64_t agent_account_limit_get(const agent_server_config_t *config,
                                    agent_limit_name_t name,
                                    const char *account_id);

/* Returns the AgentLimit that names the account (NULL: the one without an
 * account); NULL if there is none. */
const agent_account_limit_t *agent_account_limit_find(
    const agent_server_config_t *config, agent_limit_name_t name,
    const char *account_id);

/* Returns the limits that the schema enforces; in pool. */
agent_stored_limits_t agent_account_limits_stored(
    const agent_server_config_t *config, apr_pool_t *pool);

#endif
