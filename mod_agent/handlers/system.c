/* SPDX-License-Identifier: Apache-2.0 */
/* GET /ok: health. GET /info: version, region and features.
 * GET /.well-known/agent-addresses: addresses of the service. */
#include "handlers.h"

#include <apr_strings.h>

#include "../config/published_address.h"
#include "../config/region.h"
#include "../core/version.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/system.h"
#include "../private.h"

int agent_handle_ok(agent_call_t *call)
{
    bool check_db = false;

    if (agent_request_flag(&check_db, call, "check_db") != APR_SUCCESS
        || (check_db
            && agent_system_ping(call->db, &call->err, call->pool)
                != APR_SUCCESS)) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, "{\"ok\":true}");
}

/* rest: more members, each after a comma. A region's name needs no escapes. */
static int send_info(agent_call_t *call, const char *rest)
{
    return agent_response_json(
        call, HTTP_OK,
        apr_pstrcat(call->pool,
                    "{\"version\":\"" AGENT_VERSION
                    "\",\"server\":\"mod_agent\",\"region\":\"",
                    agent_region_own(call->child->config), "\"", rest, "}",
                    NULL));
}

int agent_handle_info(agent_call_t *call)
{
    /* Clients use a feature only if its flag is true. */
    return send_info(call,
                     ",\"flags\":{\"assistants\":true,\"crons\":false,"
                     "\"langsmith\":false,\"stream_namespaces\":true,"
                     "\"strict_resume\":true},\"metadata\":{}");
}

int agent_handle_platform_info(agent_call_t *call)
{
    const agent_server_config_t *config = call->child->config;

    return send_info(call,
                     agent_region_print_urls(
                         agent_region_find(config, agent_region_own(config)),
                         true, call->pool));
}

/* A region's name needs no escapes. */
int agent_handle_addresses(agent_call_t *call)
{
    const agent_server_config_t *config = call->child->config;

    return agent_response_json(
        call, HTTP_OK,
        apr_pstrcat(
            call->pool, "{\"region\":\"", agent_region_own(config),
            "\",\"serial\":",
            apr_itoa(call->pool, agent_published_address_serial(config)),
            ",\"ingress\":[",
            agent_published_address_print(
                config, &agent_published_address_ingress, call->pool),
            "],\"egress\":[",
            agent_published_address_print(
                config, &agent_published_address_egress, call->pool),
            "],\"not_after\":{\"ingress\":{",
            agent_published_address_print_ends(
                config, &agent_published_address_ingress, call->pool),
            "},\"egress\":{",
            agent_published_address_print_ends(
                config, &agent_published_address_egress, call->pool),
            "}}}", NULL));
}
