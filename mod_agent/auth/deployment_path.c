/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers for deployments that a platform host does not serve; see
 * deployment_path.h. A location that serves one requires a key before it checks
 * anything else. This hook does the same, so that no response reveals which
 * names exist.
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

/* Responds to a request without a key as AuthType AgentKey does, and to one
 * with a key as if the key were of another account. */
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
    /* At this hook the location is known, and whether mod_proxy takes the
     * request. */
    ap_hook_header_parser(refuse, NULL, NULL, APR_HOOK_LAST);
}
