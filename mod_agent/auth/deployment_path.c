/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers for deployments that a platform host does not serve; see
 * deployment_path.h. A location that serves one asks for a key before anything
 * else is looked at: the same is done here, in a hook, so that no request tells
 * which names there are.
 */
#include "deployment_path.h"

#include <stdbool.h>
#include <string.h>

#include <httpd.h>
#include <http_config.h>
#include <http_protocol.h>

#include "../http/problem.h"
#include "../http/router.h"
#include "child_state.h"
#include "provider.h"
#include "realm.h"
#include "require.h"

/* A location that serves a deployment has another handler. */
static bool is_not_served(request_rec *r)
{
    const agent_dir_config_t *dir = agent_location_dir(r);
    const agent_api_t *api = agent_router_of(r);
    const char *path = api != NULL && api->is_platform
        ? agent_router_path(r, dir)
        : NULL;
    size_t length = strlen(AGENT_DEPLOYMENTS_PATH);

    return path != NULL && strncmp(path, AGENT_DEPLOYMENTS_PATH, length) == 0
        && path[length] != '\0' && path[length] != '/';
}

/* Without a key as AuthType AgentKey answers, else as to a key of another
 * account. */
static int refuse(request_rec *r)
{
    const agent_child_t *child = agent_child_state_get();
    agent_error_t *err = NULL;

    if (child == NULL || !is_not_served(r)) {
        return DECLINED;
    }
    return agent_provider_identify(r, &err) == APR_SUCCESS
        ? agent_require_hide_deployment(r)
        : agent_problem_refuse(r, child, err);
}

void agent_deployment_path_register(void)
{
    /* The location is known, and whether mod_proxy takes the request. */
    ap_hook_header_parser(refuse, NULL, NULL, APR_HOOK_LAST);
}
