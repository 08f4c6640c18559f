/* SPDX-License-Identifier: Apache-2.0 */
/* Reads mod_dbd's directives; see dbd.h. */
#include "dbd.h"

#include <apr_strings.h>

/* mod_dbd's own default of DBDMax. */
#define DBD_MAX_DEFAULT 10

static const char *read_params(apr_pool_t *pool)
{
    const char *args = agent_config_other_directive("DBDParams");

    return args != NULL ? ap_getword_conf(pool, &args) : NULL;
}

const char *agent_dbd_conninfo(const agent_server_config_t *config,
                               apr_pool_t *pool)
{
    return config->database != NULL ? config->database : read_params(pool);
}

const char *agent_dbd_plain_params(apr_pool_t *pool)
{
    return agent_config_other_directive("DBDInitSQL") == NULL
        ? read_params(pool)
        : NULL;
}

int agent_dbd_max(apr_pool_t *pool)
{
    const char *args = agent_config_other_directive("DBDMax");

    return args != NULL ? (int)apr_atoi64(ap_getword_conf(pool, &args))
                        : DBD_MAX_DEFAULT;
}
