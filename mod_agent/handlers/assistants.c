/* SPDX-License-Identifier: Apache-2.0 */
/* /assistants: assistants, and the schemas and drawings of their graphs. */
#include "handlers.h"

#include <apr_strings.h>

#include "../http/problem.h"
#include "../http/request.h"
#include "../http/response.h"
#include "../model/assistant.h"
#include "../model/schema.h"

static int send_view(agent_call_t *call, agent_assistant_view_t view)
{
    const char *body;

    if (agent_assistant_get(&body, call->db, &call->ref, call->assistant_id,
                            view, &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_assistant_get(agent_call_t *call)
{
    return send_view(call, AGENT_ASSISTANT_RECORD);
}

int agent_handle_assistant_schemas(agent_call_t *call)
{
    return send_view(call, AGENT_ASSISTANT_SCHEMAS);
}

/* xray: how deep subgraphs are drawn; true is any depth. Checked and otherwise
 * ignored: built-in graphs have no subgraphs. */
int agent_handle_assistant_graph(agent_call_t *call)
{
    bool flag = false;
    int depth = 0;

    if (agent_request_flag(&flag, call, "xray") != APR_SUCCESS
        && agent_request_number(&depth, call, "xray", 0, 1000) != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return send_view(call, AGENT_ASSISTANT_DRAWING);
}

/* Built-in graphs have no subgraphs, of any namespace. */
int agent_handle_assistant_subgraphs(agent_call_t *call)
{
    bool recurse = false;
    const char *record;

    if (agent_request_flag(&recurse, call, "recurse") != APR_SUCCESS
        || agent_assistant_get(&record, call->db, &call->ref,
                               call->assistant_id, AGENT_ASSISTANT_RECORD,
                               &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, "{}");
}

int agent_handle_assistant_search(agent_call_t *call)
{
    const char *body;
    const char *next;
    agent_raw_t value;

    if (agent_request_body(&value, call) != APR_SUCCESS
        || agent_schema_assistants(&call->fields, value, &call->err, call->pool)
            != APR_SUCCESS
        || agent_assistant_search(&body, &next, call->db, &call->ref,
                                  call->body, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_set_next(call, next);
    return agent_response_json(call, HTTP_OK, body);
}
