/* SPDX-License-Identifier: Apache-2.0 */
/* Reads mod_dbd's directives; see dbd.h. */
#include "dbd.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>
#include <http_config.h>

#include "conftree.h"

/* mod_dbd's own default of DBDMax. */
#define DBD_MAX_DEFAULT 10

static const char *read_params(apr_pool_t *pool)
{
    const char *args = agent_conftree_find("DBDParams");

    return args != NULL ? ap_getword_conf(pool, &args) : NULL;
}

const char *agent_dbd_check(const agent_server_config_t *config,
                            apr_pool_t *pool)
{
    const char *driver = agent_conftree_find("DBDriver");

    if (ap_find_linked_module("mod_dbd.c") == NULL) {
        return "mod_agent needs mod_dbd: expected a LoadModule dbd_module, got "
               "none";
    }
    if (driver == NULL || strcasecmp(driver, "pgsql") != 0) {
        return apr_psprintf(pool, "DBDriver: expected pgsql, got %s",
                            driver ? driver : "none");
    }
    return agent_dbd_conninfo(config, pool) != NULL
        ? NULL
        : "DBDParams: expected a PostgreSQL connection string, got none";
}

const char *agent_dbd_conninfo(const agent_server_config_t *config,
                               apr_pool_t *pool)
{
    return config->database != NULL ? config->database : read_params(pool);
}

bool agent_dbd_is_shared(const agent_server_config_t *config, apr_pool_t *pool)
{
    const char *params = read_params(pool);

    return config->database == NULL
        || (params != NULL && strcmp(config->database, params) == 0);
}

const char *agent_dbd_plain_params(apr_pool_t *pool)
{
    return agent_conftree_find("DBDInitSQL") == NULL ? read_params(pool) : NULL;
}

int agent_dbd_max(apr_pool_t *pool)
{
    const char *args = agent_conftree_find("DBDMax");

    return args != NULL ? (int)apr_atoi64(ap_getword_conf(pool, &args))
                        : DBD_MAX_DEFAULT;
}
