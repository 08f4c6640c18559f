/* SPDX-License-Identifier: Apache-2.0 */
/* GET /ok and GET /info: is the server there, and what is it. */
#include "handlers.h"

#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../private.h"

int agent_handle_ok(agent_call_t *call)
{
    bool check_db = false;
    const char *body;

    if (agent_request_flag(&check_db, call, "check_db") != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    if (check_db
        && agent_pool_call(&body, call->db, AGENT_SQL_PING, NULL, &call->err,
                           call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, "{\"ok\":true}");
}

int agent_handle_info(agent_call_t *call)
{
    /* Clients look at the flags before they offer what is behind them. */
    return agent_response_json(
        call, HTTP_OK,
        "{\"version\":\"" AGENT_VERSION "\",\"server\":\"mod_agent\","
        "\"flags\":{\"assistants\":false,\"crons\":false,"
        "\"langsmith\":false},\"metadata\":{}}");
}
