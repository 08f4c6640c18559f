/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces httpd's HTML error pages by JSON in an output filter; see
 * server_error.h. An ErrorDocument, and other modules' own error bodies, are
 * left alone.
 */
#include "server_error.h"

#include <string.h>

#include <apr_buckets.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <http_vhost.h>
#include <mod_core.h>
#include <util_filter.h>

#include "../config/location.h"
#include "../core/error.h"
#include "../core/json.h"
#include "body.h"
#include "browser.h"
#include "problem.h"
#include "router.h"

#define FILTER_NAME "AGENT_SERVER_ERROR"
#define HTML_TYPE   "text/html"

/* Set when the hooks are registered. */
static ap_filter_rec_t *error_filter;

/* ---- which requests ---- */

/* For errors that httpd finds before it walks the locations: walks them with
 * the request's path, or with / when the request line had none. */
static void find_location(request_rec *r)
{
    char *uri = r->uri;

    if (r->per_dir_config != r->server->lookup_defaults) {
        return;
    }
    if (uri == NULL || *uri != '/') {
        r->uri = apr_pstrdup(r->pool, "/");
    }
    ap_location_walk(r);
    r->uri = uri;
}

/* The error with which a hook of this module has ended the request, in any
 * location; NULL: none. */
static const agent_error_t *find_refusal(const request_rec *r)
{
    const agent_error_t *err = agent_problem_of(r);

    return err != NULL && err->http == r->status ? err : NULL;
}

static bool is_for_api(request_rec *r)
{
    if (find_refusal(r) != NULL) {
        return true;
    }
    find_location(r);
    return agent_router_find(agent_location_handler(r)) != NULL;
}

/* Whether an ErrorDocument applies. An empty one, which this module's refusals
 * set, does not count. A quotation mark begins a text. */
static bool has_document(request_rec *r)
{
    const char *document = ap_response_code_string(
        r, ap_index_of_response(r->status));

    return document != NULL && strcmp(document, "\"") != 0;
}

/* ---- the body ---- */

/* "Request Header Fields Too Large" -> request_header_fields_too_large. */
static const char *make_code(const char *reason, apr_pool_t *pool)
{
    char *code = apr_pstrdup(pool, reason);
    char *end = code;

    for (; *reason != '\0'; reason++) {
        if (apr_isalnum(*reason)) {
            *end++ = (char)apr_tolower(*reason);
        }
        else if (*reason == ' ' || *reason == '-') {
            *end++ = '_';
        }
    }
    *end = '\0';
    return code;
}

/* This module's code for the status, else one made of httpd's reason phrase. */
static const char *find_code(int status, const char *reason, apr_pool_t *pool)
{
    switch (status) {
    case HTTP_REQUEST_ENTITY_TOO_LARGE:
        return agent_error_code(AGENT_E_TOO_LARGE);
    case HTTP_INTERNAL_SERVER_ERROR:
        return agent_error_code(AGENT_E_INTERNAL);
    default:
        return make_code(reason, pool);
    }
}

/* True for a Host that StrictHostCheck refuses, with 400 and without a reason.
 */
static bool has_foreign_host(request_rec *r)
{
    const core_server_config *core = ap_get_core_module_config(
        r->server->module_config);

    return r->status == HTTP_BAD_REQUEST
        && core->strict_host_check == AP_CORE_CONFIG_ON && r->hostname != NULL
        && !ap_matches_request_vhost(r, r->hostname, r->server->port);
}

static const char *make_body(request_rec *r)
{
    const agent_error_t *refusal = find_refusal(r);
    /* "404 Not Found" */
    const char *reason = ap_get_status_line(r->status) + 4;
    const char *detail = reason;

    if (refusal != NULL) {
        return agent_problem_body(refusal, r->pool);
    }
    if (has_foreign_host(r)) {
        agent_error_t *err;

        agent_error_set(&err, AGENT_E_MISDIRECTED, NULL, NULL, r->pool);
        detail = err->detail;
    }
    return apr_pstrcat(
        r->pool, "{\"detail\":", agent_json_quote(detail, r->pool),
        ",\"code\":\"", find_code(r->status, reason, r->pool), "\"}", NULL);
}

static void drop_content(apr_bucket_brigade *brigade)
{
    apr_bucket *bucket = APR_BRIGADE_FIRST(brigade);

    while (bucket != APR_BRIGADE_SENTINEL(brigade)) {
        apr_bucket *next = APR_BUCKET_NEXT(bucket);

        if (!APR_BUCKET_IS_METADATA(bucket)) {
            apr_bucket_delete(bucket);
        }
        bucket = next;
    }
}

static bool is_html(const request_rec *r)
{
    return r->content_type != NULL
        && strncmp(r->content_type, HTML_TYPE, strlen(HTML_TYPE)) == 0;
}

/* Sets the headers of the JSON body and puts it into the brigade. */
static const char *begin_content(request_rec *r, apr_bucket_brigade *brigade)
{
    const char *body = make_body(r);

    ap_set_content_type(r, "application/json");
    ap_set_content_length(r, (apr_off_t)strlen(body));
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    APR_BRIGADE_INSERT_HEAD(
        brigade,
        apr_bucket_pool_create(body, strlen(body), r->pool,
                               r->connection->bucket_alloc));
    return body;
}

/* f->ctx: the JSON body, once it is sent. */
static apr_status_t replace_content(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    if (f->ctx == NULL && !is_html(f->r)) {
        ap_remove_output_filter(f);
        return ap_pass_brigade(f->next, brigade);
    }
    drop_content(brigade);
    if (f->ctx == NULL) {
        f->ctx = (void *)begin_content(f->r, brigade);
    }
    return ap_pass_brigade(f->next, brigade);
}

/* mod_authz_core answers 500 when a Require has failed, and 401 when it has
 * denied, whatever the error. Returns whether it has: no ErrorDocument is sent
 * then, as with an error of the handler. */
static bool restore_status(request_rec *r)
{
    const agent_error_t *err = agent_problem_of(r);

    if (err == NULL || err->http == r->status
        || (r->status != HTTP_INTERNAL_SERVER_ERROR
            && r->status != HTTP_UNAUTHORIZED)) {
        return false;
    }
    r->status = err->http;
    return true;
}

static void take_error(request_rec *r)
{
    bool has_failed = restore_status(r);
    bool is_error = r->status >= HTTP_BAD_REQUEST || find_refusal(r) != NULL;

    if (!is_error || !is_for_api(r)) {
        return;
    }
    /* If httpd itself refuses the request, it would read the body first. */
    agent_body_skip(r);
    agent_browser_set_cors(r);
    if (has_failed || !has_document(r)) {
        ap_add_output_filter_handle(error_filter, NULL, r, r->connection);
    }
}

void agent_server_error_register(void)
{
    error_filter = ap_register_output_filter(FILTER_NAME, replace_content, NULL,
                                             AP_FTYPE_RESOURCE);
    ap_hook_insert_error_filter(take_error, NULL, NULL, APR_HOOK_MIDDLE);
}
