/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that disconnect; see disconnect.h. */
#include "disconnect.h"

#include <string.h>

#include "../core/wake.h"
#include "../http/problem.h"
#include "../http/request.h"
#include "../http/requester.h"
#include "../http/response.h"
#include "../model/run.h"

apr_status_t agent_disconnect_read_query(bool *cancels, agent_call_t *call)
{
    apr_status_t rv = agent_request_flag(cancels, call, "cancel_on_disconnect");

    if (rv != APR_SUCCESS || !*cancels) {
        return rv;
    }
    /* The parameter lets a GET cancel a run, which pages of other sites and
     * keys without the scope must not do. */
    return call->is_cross_site
        ? agent_error_set(&call->err, AGENT_E_CROSS_SITE, NULL, NULL,
                          call->pool)
        : agent_requester_check_scope(call, AGENT_SCOPE_RUN);
}

bool agent_disconnect_read_body(const agent_call_t *call)
{
    return strcmp(agent_field_string(call->fields, "on_disconnect", "continue"),
                  "cancel")
        == 0;
}

static void cancel(agent_call_t *call, apr_pool_t *scratch)
{
    const agent_run_cancel_t request = {
        .action = "interrupt", .reason = "disconnect: the client disconnected"};
    const char *changed;
    apr_status_t rv = agent_run_cancel(&changed, call->child->turn_db,
                                       &call->ref, &request, &call->err,
                                       scratch);

    if (rv == APR_SUCCESS) {
        agent_wake_cancel(call->child->wake_fd, call->ref.deployment_id,
                          changed);
    }
    /* A run that has ended or is gone is not an error here. */
    else if (agent_error_http(call->err->id) >= HTTP_INTERNAL_SERVER_ERROR) {
        agent_problem_log(call);
    }
}

void agent_disconnect_end(agent_call_t *call, bool cancels, apr_pool_t *scratch)
{
    if (cancels) {
        cancel(call, scratch);
    }
    agent_response_abort(call);
}
