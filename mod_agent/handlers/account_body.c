/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks bodies; see account_body.h. */
#include "account_body.h"

#include "../http/request.h"

apr_status_t agent_account_body_read(agent_raw_t *body, agent_call_t *call,
                                     agent_account_body_t kind)
{
    return agent_request_small_body(body, call) == APR_SUCCESS
        ? agent_schema_account(&call->fields, kind, *body, &call->err,
                               call->pool)
        : APR_EGENERAL;
}
