/* SPDX-License-Identifier: Apache-2.0 */
/* Error bodies and the error log lines of requests; see problem.h. */
#include "problem.h"

#include <apr_strings.h>

#include "../private.h"
#include "../core/json.h"
#include "response.h"

/* A database that is down fails every request: one line a minute and child. */
static void log_unavailable(const agent_call_t *call, const char *cause)
{
    unsigned suppressed;

    if (agent_throttle_pass(&call->child->throttles[call->err->id],
                            apr_time_now(), &suppressed)) {
        const char *more = suppressed > 0
            ? apr_psprintf(call->pool, " (%u more like this were not logged)",
                           suppressed)
            : "";

        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, call->r,
                      AGENT_LOGNO(0102) "%s %s: %s: %s%s", call->r->method,
                      call->r->uri, agent_error_code(call->err->id), cause,
                      more);
    }
}

/* Errors that an administrator can turn off by a directive. */
static bool is_configurable(agent_error_id_t id)
{
    return id == AGENT_E_MISDIRECTED || id == AGENT_E_CROSS_SITE
        || id == AGENT_E_CONTENT_TYPE || id == AGENT_E_WEBHOOK;
}

void agent_problem_log(const agent_call_t *call)
{
    const agent_error_t *err = call->err;
    const char *cause = err->cause ? err->cause : err->detail;

    if (agent_error_http(err->id) > HTTP_INTERNAL_SERVER_ERROR) {
        log_unavailable(call, cause);
    }
    else if (agent_error_http(err->id) == HTTP_INTERNAL_SERVER_ERROR) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, call->r,
                      AGENT_LOGNO(0101) "%s %s: internal error: %s",
                      call->r->method, call->r->uri, cause);
    }
    else if (is_configurable(err->id)) {
        ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, call->r,
                      AGENT_LOGNO(0104) "%s %s: %s: %s", call->r->method,
                      call->r->uri, agent_error_code(err->id), cause);
    }
    else {
        ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, call->r,
                      AGENT_LOGNO(0103) "%s %s: %s: %s", call->r->method,
                      call->r->uri, agent_error_code(err->id), err->detail);
    }
}

int agent_problem_send(agent_call_t *call)
{
    const agent_error_t *err = call->err;
    int status = agent_error_http(err->id);
    const char *body = apr_pstrcat(
        call->pool, "{\"detail\":", agent_json_quote(err->detail, call->pool),
        ",\"code\":\"", agent_error_code(err->id), "\"}", NULL);

    agent_problem_log(call);
    if (call->is_answered) {
        return OK;
    }
    if (status == HTTP_SERVICE_UNAVAILABLE) {
        apr_table_setn(call->r->err_headers_out, "Retry-After", "1");
    }
    return agent_response_json(call, status, body);
}
