/* SPDX-License-Identifier: Apache-2.0 */
/* The status handler: reads parameters, chooses the format, sends. */
#include "handler.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <util_script.h>

#include "../private.h"
#include "browser.h"
#include "print.h"

#define FORM_TYPE       "application/x-www-form-urlencoded"
#define MAX_FORM_FIELDS 16
#define MAX_FORM_BYTES  8192

/* ---- Reading ---- */

static bool is_form(const request_rec *r)
{
    const char *type = apr_table_get(r->headers_in, "Content-Type");

    return type != NULL
        && strncasecmp(type, FORM_TYPE, sizeof(FORM_TYPE) - 1) == 0;
}

/* Reads the fields of a POST. Returns a status for a body that is not a form,
 * or too long. A reset without a body has its fields in the query string. */
static int read_form(apr_table_t *form, request_rec *r)
{
    apr_array_header_t *pairs = NULL;
    int status;

    if (ap_request_has_body(r) && !is_form(r)) {
        return HTTP_UNSUPPORTED_MEDIA_TYPE;
    }
    status = ap_parse_form_data(r, NULL, &pairs, MAX_FORM_FIELDS,
                                MAX_FORM_BYTES);
    if (status != OK) {
        return status;
    }
    while (pairs != NULL && !apr_is_empty_array(pairs)) {
        ap_form_pair_t *pair = apr_array_pop(pairs);
        apr_size_t size = MAX_FORM_BYTES;
        char *value = apr_palloc(r->pool, MAX_FORM_BYTES + 1);

        apr_brigade_flatten(pair->value, value, &size);
        value[size] = '\0';
        apr_table_setn(form, pair->name, value);
    }
    return OK;
}

static int read_parameters(apr_table_t **form, request_rec *r)
{
    ap_args_to_table(r, form);
    return r->method_number == M_POST ? read_form(*form, r) : OK;
}

/* ---- Sending ---- */

typedef enum format_t { FORMAT_HTML, FORMAT_JSON, FORMAT_METRICS } format_t;

static bool accepts(const request_rec *r, const char *type)
{
    const char *accept = apr_table_get(r->headers_in, "Accept");

    return accept != NULL && strstr(accept, type) != NULL;
}

/* HTML for browsers, Prometheus text for Prometheus, JSON otherwise. */
static format_t choose_format(const request_rec *r, const char *word)
{
    if (word == NULL) {
        if (accepts(r, "text/html")) {
            return FORMAT_HTML;
        }
        return accepts(r, "text/plain") || accepts(r, "openmetrics")
            ? FORMAT_METRICS
            : FORMAT_JSON;
    }
    if (strcmp(word, "html") == 0) {
        return FORMAT_HTML;
    }
    return strcmp(word, "prometheus") == 0 ? FORMAT_METRICS : FORMAT_JSON;
}

static const char *const content_types[] = {
    "text/html; charset=utf-8", "application/json",
    "text/plain; version=0.0.4; charset=utf-8"};

static void set_headers(request_rec *r, format_t format)
{
    ap_set_content_type(r, content_types[format]);
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    if (format == FORMAT_HTML) {
        apr_table_setn(r->headers_out, "Content-Security-Policy",
                       "default-src 'none'; style-src 'unsafe-inline'; "
                       "form-action 'self'; base-uri 'none'; "
                       "frame-ancestors 'none'");
    }
}

static bool has_result(const rlr_query_t *query)
{
    return query->problem != NULL || query->decision != NULL
        || query->reset >= 0;
}

static void send_status(request_rec *r, format_t format,
                        const rlr_query_t *query)
{
    rlr_status_t status;

    if (query->problem != NULL) {
        r->status = HTTP_UNPROCESSABLE_ENTITY;
    }
    /* Results of queries are not available as metrics. */
    if (format == FORMAT_METRICS && has_result(query)) {
        format = FORMAT_JSON;
    }
    set_headers(r, format);
    if (format == FORMAT_JSON && has_result(query)) {
        rlr_print_json_query(r, query);
        return;
    }
    rlr_status_collect(&status, r->pool);
    if (format == FORMAT_HTML) {
        rlr_print_html(r, &status, query);
    }
    else if (format == FORMAT_METRICS) {
        rlr_print_metrics(r, &status);
    }
    else {
        rlr_print_json(r, &status);
    }
}

int rlr_handler_run(request_rec *r)
{
    rlr_query_t query;
    apr_table_t *form;
    int status;

    if (r->handler == NULL || strcmp(r->handler, RLR_STATUS_HANDLER) != 0) {
        return DECLINED;
    }
    ap_allow_standard_methods(r, REPLACE_ALLOW, M_GET, M_POST, -1);
    if (r->method_number != M_GET && r->method_number != M_POST) {
        return HTTP_METHOD_NOT_ALLOWED;
    }
    status = rlr_browser_check(r);
    if (status == OK) {
        status = read_parameters(&form, r);
    }
    if (status != OK) {
        return status;
    }
    rlr_query_run(&query, r, form);
    send_status(r, choose_format(r, apr_table_get(form, "format")), &query);
    return OK;
}
