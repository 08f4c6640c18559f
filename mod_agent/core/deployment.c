/* SPDX-License-Identifier: Apache-2.0 */
/* Deployments as texts; see deployment.h. */
#include "deployment.h"

#include <string.h>

#include <apr_strings.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyz0123456789"

bool agent_deployment_is_name(const char *text)
{
    size_t length = strspn(text, LETTERS "-_");

    return length <= AGENT_DEPLOYMENT_NAME_MAX && text[length] == '\0'
        && strspn(text, LETTERS) > 0;
}

const char *agent_deployment_print(const char *name, const char *account_id,
                                   apr_pool_t *pool)
{
    return strcmp(account_id, AGENT_ACCOUNT_ID) == 0
        ? name
        : apr_pstrcat(pool, name, "@", account_id, NULL);
}

const char *agent_deployment_account(const char *deployment)
{
    const char *end = strchr(deployment, '@');

    return end != NULL ? end + 1 : NULL;
}

const char *agent_deployment_name(const char *deployment, apr_pool_t *pool)
{
    const char *end = strchr(deployment, '@');

    return end != NULL
        ? apr_pstrmemdup(pool, deployment, (apr_size_t)(end - deployment))
        : deployment;
}
