/* SPDX-License-Identifier: Apache-2.0 */
/* GET /auth; /v1/account/keys and below: the API keys of the account of the
 * request's key. */
#include "handlers.h"

#include "../http/problem.h"
#include "../http/response.h"
#include "../model/account.h"
#include "account_body.h"
#include "page_params.h"

int agent_handle_key_describe(agent_call_t *call)
{
    const char *body;

    if (agent_account_describe_key(&body, call->db, call->identity->key_id,
                                   &call->err, call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_key_list(agent_call_t *call)
{
    agent_account_part_t part;
    agent_page_t page = {0};

    if (agent_page_params_read(&part, call, "after") != APR_SUCCESS
        || agent_account_keys(&page, call->db, &part, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    agent_response_set_next(call, page.next);
    return agent_response_json(call, HTTP_OK, page.body);
}

int agent_handle_key_create(agent_call_t *call)
{
    agent_raw_t request;
    const char *body;

    if (agent_account_body_read(&request, call, AGENT_ACCOUNT_KEY)
            != APR_SUCCESS
        || agent_account_create_key(&body, call->db, call->identity->key_id,
                                    request.text, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_key_rotate(agent_call_t *call)
{
    const agent_account_key_change_t change = {call->identity->key_id,
                                               call->key_id};
    agent_raw_t request;
    const char *body;

    if (agent_account_body_read(&request, call, AGENT_ACCOUNT_ROTATION)
            != APR_SUCCESS
        || agent_account_rotate_key(&body, call->db, &change, request.text,
                                    &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}

int agent_handle_key_revoke(agent_call_t *call)
{
    const agent_account_key_change_t change = {call->identity->key_id,
                                               call->key_id};
    const char *body;

    if (agent_account_revoke_key(&body, call->db, &change, &call->err,
                                 call->pool)
        != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}
