/* SPDX-License-Identifier: Apache-2.0 */
/* Error bodies and the error log lines of requests; see problem.h. */
#include "problem.h"

#include <apr_strings.h>

#include "../private.h"
#include "response.h"

void agent_problem_log(const agent_call_t *call)
{
    const agent_error_t *err = call->err;
    const char *cause = err->cause ? err->cause : "";
    const char *colon = err->cause ? ": " : "";

    if (agent_error_http(err->id) == HTTP_INTERNAL_SERVER_ERROR) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, call->r,
                      AGENT_LOGNO(0101) "%s %s: internal error%s%s",
                      call->r->method, call->r->uri, colon, cause);
    }
    else if (agent_error_http(err->id) > HTTP_INTERNAL_SERVER_ERROR) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, call->r,
                      AGENT_LOGNO(0102) "%s %s: %s%s%s", call->r->method,
                      call->r->uri, agent_error_code(err->id), colon, cause);
    }
    else {
        ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, call->r,
                      AGENT_LOGNO(0103) "%s %s: %s: %s%s%s", call->r->method,
                      call->r->uri, agent_error_code(err->id), err->detail,
                      colon, cause);
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
    if (status == HTTP_SERVICE_UNAVAILABLE) {
        apr_table_setn(call->r->err_headers_out, "Retry-After", "1");
    }
    return agent_response_json(call, status, body);
}
