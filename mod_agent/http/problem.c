/* SPDX-License-Identifier: Apache-2.0 */
/* Error bodies and the error log lines of requests; see problem.h. */
#include "problem.h"

#include <apr_strings.h>

#include "../private.h"
#include "../config/region.h"
#include "../core/json.h"
#include "response.h"

#define DEFAULT_REALM "agent"

/* The error of a hook, in the request's pool. */
#define REFUSED "agent_refused"

/* Whether the client's own request, from which redirects and subrequests were
 * made, has a key of another region. */
static bool is_of_other_region(const request_rec *r)
{
    while (r->prev != NULL || r->main != NULL) {
        r = r->prev != NULL ? r->prev : r->main;
    }
    return apr_table_get(r->notes, AGENT_WRONG_REGION_VARIABLE) != NULL;
}

/* For a request with a key of another region logs nothing of the request, and
 * not its client's address, which must not be stored in this region. id: of the
 * message. */
static void log_line(const request_rec *r, int level, const char *id,
                     const char *text)
{
    if (is_of_other_region(r)) {
        ap_log_error(APLOG_MARK, level, 0, r->server, "%s%s", id, text);
    }
    else {
        ap_log_rerror(APLOG_MARK, level, 0, r, "%s%s %s: %s", id, r->method,
                      r->uri, text);
    }
}

/* While the database is down every request fails: logs one line a minute for
 * each child. */
static void log_unavailable(request_rec *r, const agent_child_t *child,
                            const agent_error_t *err, const char *cause)
{
    unsigned suppressed;

    if (agent_throttle_pass(&child->throttles[err->id], apr_time_now(),
                            &suppressed)) {
        const char *more = suppressed > 0
            ? apr_psprintf(r->pool, " (%u more like this were not logged)",
                           suppressed)
            : "";

        log_line(r, APLOG_ERR, AGENT_LOGNO(0102),
                 apr_pstrcat(r->pool, agent_error_code(err->id), ": ", cause,
                             more, NULL));
    }
}

/* Errors that the administrator can avoid by a directive. */
static bool is_configurable(agent_error_id_t id)
{
    return id == AGENT_E_MISDIRECTED || id == AGENT_E_CROSS_SITE
        || id == AGENT_E_CONTENT_TYPE || id == AGENT_E_WEBHOOK;
}

/* Logs the cause of WRONG_REGION only: causes and details of other errors
 * contain parts of the request. */
static void log_other_region(const request_rec *r, const agent_error_t *err)
{
    ap_log_error(APLOG_MARK, APLOG_INFO, 0, r->server,
                 AGENT_LOGNO(0105) "%s: %s", agent_error_code(err->id),
                 err->id == AGENT_E_WRONG_REGION ? err->cause
                                                 : "a key of another region");
}

static void log_error(request_rec *r, const agent_child_t *child,
                      const agent_error_t *err)
{
    const char *cause = err->cause ? err->cause : err->detail;
    int status = agent_error_http(err->id);

    if (status > HTTP_INTERNAL_SERVER_ERROR) {
        log_unavailable(r, child, err, cause);
    }
    else if (status == HTTP_INTERNAL_SERVER_ERROR) {
        log_line(r, APLOG_ERR, AGENT_LOGNO(0101),
                 apr_pstrcat(r->pool, "internal error: ", cause, NULL));
    }
    else if (err->id == AGENT_E_WRONG_REGION || is_of_other_region(r)) {
        log_other_region(r, err);
    }
    else if (is_configurable(err->id)) {
        ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, r,
                      AGENT_LOGNO(0104) "%s %s: %s: %s", r->method, r->uri,
                      agent_error_code(err->id), cause);
    }
    else {
        ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, r,
                      AGENT_LOGNO(0103) "%s %s: %s: %s", r->method, r->uri,
                      agent_error_code(err->id), err->detail);
    }
}

void agent_problem_log(const agent_call_t *call)
{
    log_error(call->r, call->child, call->err);
}

void agent_problem_challenge(request_rec *r, const char *realm)
{
    apr_table_setn(r->err_headers_out, "WWW-Authenticate",
                   apr_pstrcat(r->pool, "Bearer realm=\"",
                               realm != NULL ? realm : DEFAULT_REALM, "\"",
                               NULL));
}

static void set_headers(request_rec *r, const agent_error_t *err)
{
    if (err->retry_sec > 0) {
        apr_table_setn(r->err_headers_out, "Retry-After",
                       apr_itoa(r->pool, err->retry_sec));
    }
    else if (err->http == HTTP_SERVICE_UNAVAILABLE) {
        apr_table_setn(r->err_headers_out, "Retry-After", "1");
    }
}

const char *agent_problem_object(const agent_error_t *err, apr_pool_t *pool)
{
    return apr_pstrcat(pool, "{\"error\":\"", agent_error_code(err->id),
                       "\",\"message\":", agent_json_quote(err->detail, pool),
                       "}", NULL);
}

const char *agent_problem_body(const agent_error_t *err, apr_pool_t *pool)
{
    return apr_pstrcat(pool,
                       "{\"detail\":", agent_json_quote(err->detail, pool),
                       ",\"code\":\"", agent_error_code(err->id), "\"",
                       err->members, "}", NULL);
}

int agent_problem_send(agent_call_t *call)
{
    const agent_error_t *err = call->err;

    agent_problem_log(call);
    if (call->is_answered) {
        return OK;
    }
    set_headers(call->r, err);
    if (err->http == HTTP_UNAUTHORIZED) {
        agent_problem_challenge(call->r, call->realm);
    }
    return agent_response_json(call, err->http,
                               agent_problem_body(err, call->pool));
}

int agent_problem_refuse(request_rec *r, const agent_child_t *child,
                         const agent_error_t *err)
{
    log_error(r, child, err);
    set_headers(r, err);
    apr_pool_userdata_setn(err, REFUSED, NULL, r->pool);
    return err->http;
}

const agent_error_t *agent_problem_of(const request_rec *r)
{
    void *err = NULL;

    apr_pool_userdata_get(&err, REFUSED, r->pool);
    return err;
}
