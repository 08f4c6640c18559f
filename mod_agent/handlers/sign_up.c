/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/accounts: sign-up, and the count of its requests. */
#include "handlers.h"

#include "../config/platform.h"
#include "../core/clock.h"
#include "../http/problem.h"
#include "../http/response.h"
#include "../model/account.h"
#include "../wait/client_address.h"
#include "account_body.h"

/* Requests of one address to create an account, in the time from the first one
 * on. */
#define SIGN_UPS     10
#define SIGN_UP_TIME apr_time_from_sec(600)

apr_status_t agent_sign_up_start(agent_child_t *child, apr_pool_t *pool)
{
    return agent_attempts_create(&child->sign_ups, SIGN_UPS, SIGN_UP_TIME,
                                 pool);
}

/* Counts the request for its address. Error: TOO_MANY_SIGN_UPS. */
static apr_status_t count_sign_up(agent_call_t *call)
{
    apr_uint64_t address = agent_client_address_number(call->r->useragent_addr);
    apr_time_t now = agent_clock_now();
    apr_interval_time_t wait = agent_attempts_wait(call->child->sign_ups,
                                                   address, now);

    if (wait > 0) {
        agent_error_set(&call->err, AGENT_E_TOO_MANY_SIGN_UPS, NULL, NULL,
                        call->pool);
        call->err->retry_sec = (int)apr_time_sec(wait) + 1;
        return APR_EGENERAL;
    }
    agent_attempts_add(call->child->sign_ups, address, now);
    return APR_SUCCESS;
}

/* Sets *digest, in the call's pool, to that of the invitation that AgentSignUp
 * requires; NULL: it requires none. */
static apr_status_t read_invitation(const char **digest, agent_call_t *call)
{
    const char *text = agent_field_string(call->fields, "invitation", "");
    char *out = apr_palloc(call->pool, AGENT_DIGEST_SIZE);

    *digest = NULL;
    if (agent_platform_sign_up(call->dir) == AGENT_SIGN_UP_ON) {
        return APR_SUCCESS;
    }
    if (!agent_new_key_digest_token(out, text)) {
        return agent_error_set(&call->err, AGENT_E_INTERNAL, NULL,
                               "libcrypto cannot compute SHA-256", call->pool);
    }
    *digest = out;
    return APR_SUCCESS;
}

static apr_status_t read_sign_up(const char **digest, agent_call_t *call)
{
    agent_raw_t body;

    if (agent_platform_sign_up(call->dir) == AGENT_SIGN_UP_OFF) {
        return agent_error_set(&call->err, AGENT_E_SIGN_UP_OFF, NULL, NULL,
                               call->pool);
    }
    return agent_account_body_read(&body, call, AGENT_ACCOUNT_SIGN_UP)
                == APR_SUCCESS
            && count_sign_up(call) == APR_SUCCESS
        ? read_invitation(digest, call)
        : APR_EGENERAL;
}

int agent_handle_sign_up(agent_call_t *call)
{
    const char *invitation = NULL;
    const char *body;

    if (read_sign_up(&invitation, call) != APR_SUCCESS
        || agent_account_sign_up(&body, call->db,
                                 agent_field_raw(call->fields, "name"),
                                 invitation, &call->err, call->pool)
            != APR_SUCCESS) {
        return agent_problem_send(call);
    }
    return agent_response_json(call, HTTP_OK, body);
}
