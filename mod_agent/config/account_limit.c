/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of accounts; see account_limit.h. */
#include "account_limit.h"

#include <string.h>

#include <apr_strings.h>

#include "../core/deployment.h"

static const agent_account_limit_t *get_row(const agent_server_config_t *config,
                                            int i)
{
    return &APR_ARRAY_IDX(config->limits, i, const agent_account_limit_t);
}

static bool is_of(const agent_account_limit_t *row, const char *account_id)
{
    return account_id == NULL || row->account_id == NULL
        ? account_id == row->account_id
        : strcmp(row->account_id, account_id) == 0;
}

const agent_account_limit_t *agent_account_limit_find(
    const agent_server_config_t *config, agent_limit_name_t name,
    const char *account_id)
{
    for (int i = 0; i < config->limits->nelts; i++) {
        const agent_account_limit_t *row = get_row(config, i);

        if (row->name == name && is_of(row, account_id)) {
            return row;
        }
    }
    return NULL;
}

apr_int64_t agent_account_limit_get(const agent_server_config_t *config,
                                    agent_limit_name_t name,
                                    const char *account_id)
{
    const agent_account_limit_t *row = agent_account_limit_find(
        config, name, account_id != NULL ? account_id : AGENT_ACCOUNT_ID);

    if (row == NULL) {
        row = agent_account_limit_find(config, name, NULL);
    }
    return row != NULL ? row->value : AGENT_LIMIT_NONE;
}

/* NULL: none. */
static const char *print_stored(const agent_server_config_t *config,
                                apr_pool_t *pool)
{
    const char *text = "";

    /* Bounded: read once, at the start. */
    for (int i = 0; i < config->limits->nelts; i++) {
        const agent_account_limit_t *row = get_row(config, i);
        const char *account = row->account_id != NULL
            ? apr_pstrcat(pool, "\"", row->account_id, "\"", NULL)
            : "null";
        const char *value = row->value != AGENT_LIMIT_NONE
            ? apr_psprintf(pool, "%" APR_INT64_T_FMT, row->value)
            : "null";

        if (agent_limit_is_stored(row->name)) {
            text = apr_psprintf(pool,
                                "%s%s{\"account_id\":%s,\"name\":\"%s\","
                                "\"value\":%s}",
                                text, *text != '\0' ? "," : "", account,
                                agent_limit_word(row->name), value);
        }
    }
    return *text != '\0' ? apr_pstrcat(pool, "[", text, "]", NULL) : NULL;
}

agent_stored_limits_t agent_account_limits_stored(
    const agent_server_config_t *config, apr_pool_t *pool)
{
    return (agent_stored_limits_t){.text = print_stored(config, pool),
                                   .generation = config->generation};
}
