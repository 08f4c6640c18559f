/* SPDX-License-Identifier: Apache-2.0 */
/* The scopes and the user of a request; see requester.h. */
#include "requester.h"

#include <string.h>

#include <apr_strings.h>

#include "../config/account_limit.h"
#include "../core/deployment.h"
#include "../core/json.h"
#include "../core/scan.h"
#include "request.h"

/* Of x-user-id. */
#define USER_ID_BYTES 128
/* Of a user that is authenticated: 200 characters, as those of keys. */
#define USER_BYTES 800

apr_status_t agent_requester_check_scope(agent_call_t *call,
                                         agent_scope_t scope)
{
    return call->identity == NULL
            || (call->identity->scopes & (unsigned)scope) != 0
        ? APR_SUCCESS
        : agent_error_setf(&call->err, AGENT_E_SCOPE_REQUIRED, call->pool,
                           "The API key does not grant the scope '%s', which "
                           "this request needs.",
                           agent_scope_word(scope));
}

apr_status_t agent_requester_user(const char **out, agent_call_t *call)
{
    const char *user = call->user_id;

    if (user == NULL) {
        apr_status_t rv = agent_request_identifier(&user, call, "x-user-id",
                                                   USER_ID_BYTES);

        *out = user != NULL ? user : "";
        return rv;
    }
    *out = user;
    return strlen(user) <= USER_BYTES && agent_scan_is_utf8(user, strlen(user))
        ? APR_SUCCESS
        : agent_error_setf(&call->err, AGENT_E_BAD_REQUEST, call->pool,
                           "The user: expected at most %d bytes of UTF-8.",
                           USER_BYTES);
}

const char *agent_requester_print(const agent_call_t *call, const char *user)
{
    const char *name = agent_json_quote(user, call->pool);
    const char *scopes = agent_scope_print(
        call->identity != NULL ? call->identity->scopes : 0, call->pool);

    return call->is_authenticated
        ? apr_pstrcat(call->pool, "\"langgraph_auth_user_id\":", name,
                      ",\"langgraph_auth_permissions\":", scopes,
                      ",\"langgraph_auth_user\":{\"identity\":", name,
                      ",\"display_name\":", name,
                      ",\"is_authenticated\":true,\"permissions\":", scopes,
                      "}", NULL)
        : NULL;
}

agent_waiter_account_t agent_requester_account(const agent_call_t *call)
{
    const agent_server_config_t *config = call->child->config;
    const char *id = call->ref.deployment_id != NULL
        ? agent_deployment_account(agent_location_deployment(call->dir))
        : call->identity->account_id;
    agent_waiter_account_t account = {
        .waiting = agent_account_limit_get(config, AGENT_LIMIT_WAITING_REQUESTS,
                                           id),
        .streams = agent_account_limit_get(config, AGENT_LIMIT_STREAMS, id)};

    if (account.waiting >= 0 || account.streams >= 0) {
        account.id = id != NULL ? id : AGENT_ACCOUNT_ID;
    }
    return account;
}
