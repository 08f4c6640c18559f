/* SPDX-License-Identifier: Apache-2.0 */
/* Runs whose client left before their end; see abandon.h. */
#include "abandon.h"

#include <string.h>

#include "../http/problem.h"
#include "../http/request.h"
#include "../model/run.h"
#include "handlers.h"

apr_status_t agent_abandon_read(bool *cancels, agent_call_t *call)
{
    apr_status_t rv = agent_request_flag(cancels, call, "cancel_on_disconnect");

    /* The one way for a GET to change something. */
    return rv == APR_SUCCESS && *cancels && call->is_cross_site
        ? agent_error_set(&call->err, AGENT_E_CROSS_SITE, NULL, NULL,
                          call->pool)
        : rv;
}

bool agent_abandon_wanted(const agent_call_t *call)
{
    return strcmp(agent_field_string(call->fields, "on_disconnect", "continue"),
                  "cancel")
        == 0;
}

void agent_abandon_run(agent_call_t *call, apr_pool_t *scratch)
{
    const char *changed;
    apr_status_t rv = agent_run_cancel(&changed, call->db, call->ids,
                                       "interrupt", &call->err, scratch);

    if (rv == APR_SUCCESS) {
        agent_wake_supervisor(call, AGENT_WAKE_CANCEL);
        agent_report_changed(call, changed);
    }
    /* A run that has ended meanwhile, or is gone, needs no word. */
    else if (agent_error_http(call->err->id) >= HTTP_INTERNAL_SERVER_ERROR) {
        agent_problem_log(call);
    }
}
