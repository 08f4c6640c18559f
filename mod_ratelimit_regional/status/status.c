/* SPDX-License-Identifier: Apache-2.0 */
/* The status handler: collects numbers, chooses the format; see status.h. */
#include "status.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>
#include <http_core.h>
#include <http_main.h>
#include <http_protocol.h>
#include <http_request.h>
#include <util_script.h>

#include "browser.h"
#include "../config/config.h"
#include "../private.h"

#define FORM_TYPE       "application/x-www-form-urlencoded"
#define MAX_FORM_FIELDS 16
#define MAX_FORM_BYTES  8192

/* ---- Collecting ---- */

static const rlr_site_rule_t *find_site_rule(const rlr_site_t *site,
                                             const rlr_rule_t *rule)
{
    for (int i = 0; i < site->rules->nelts; i++) {
        const rlr_site_rule_t *entry = &APR_ARRAY_IDX(site->rules, i,
                                                      rlr_site_rule_t);

        if (entry->rule == rule) {
            return entry;
        }
    }
    return NULL;
}

static const char *engine_word(const rlr_site_rule_t *entry)
{
    if (entry == NULL) {
        return "off";
    }
    return entry->dry_run ? "dry-run" : "on";
}

/* One row from all virtual hosts of the region. */
static void fill_row(rlr_status_row_t *row, const char *region,
                     const rlr_site_t **first, const uint32_t *keys)
{
    const apr_array_header_t *seen = NULL;

    for (server_rec *server = ap_server_conf; server != NULL;
         server = server->next) {
        const rlr_site_t *site = rlr_config_get(server)->site;
        const rlr_site_rule_t *entry;
        const char *engine;

        if (site == NULL || site->rules == seen
            || strcmp(site->region, region) != 0) {
            continue;
        }
        /* Servers in a row share rules. */
        seen = site->rules;
        entry = find_site_rule(site, row->rule);
        engine = engine_word(entry);
        if (row->engine != NULL && strcmp(row->engine, engine) != 0) {
            engine = "mixed";
        }
        row->engine = engine;
        if (entry != NULL) {
            rlr_table_counters(site->table, entry->slot, &row->counters);
            row->live_keys = keys[entry->slot];
            *first = site;
        }
    }
}

static void collect_region(rlr_status_region_t *region, const uint32_t *keys,
                           apr_pool_t *pool)
{
    const apr_array_header_t *rules = rlr_config_get(ap_server_conf)
                                          ->global->rules;
    const rlr_site_t *site = rlr_site_find(ap_server_conf, region->region);

    region->rows = apr_array_make(pool, rules->nelts, sizeof(rlr_status_row_t));
    for (int i = 0; i < rules->nelts; i++) {
        const rlr_rule_t *rule = APR_ARRAY_IDX(rules, i, const rlr_rule_t *);
        const rlr_limit_t *limit = rlr_rule_limit(rule, region->region);
        rlr_status_row_t *row;

        if (limit == NULL) {
            continue;
        }
        row = apr_array_push(region->rows);
        memset(row, 0, sizeof(*row));
        row->rule = rule;
        row->limit = *limit;
        fill_row(row, region->region, &site, keys);
    }
    region->brake = site->brake.limit;
    rlr_table_counters(site->table, site->brake.new_slot,
                       &region->brake_counters);
}

static void collect(rlr_status_t *status, apr_pool_t *pool)
{
    const rlr_site_t *any = rlr_site_find(ap_server_conf, NULL);
    apr_array_header_t *names = rlr_site_regions(ap_server_conf, pool);
    uint32_t *keys = apr_pcalloc(pool, RLR_TABLE_RULES_MAX * sizeof(*keys));

    memset(status, 0, sizeof(*status));
    status->regions = apr_array_make(pool, names->nelts,
                                     sizeof(rlr_status_region_t));
    if (any != NULL) {
        status->live_keys = rlr_table_live_keys(
            any->table, keys, RLR_TABLE_RULES_MAX, &status->capacity,
            &rlr_clock_monotonic);
    }
    for (int i = 0; i < names->nelts; i++) {
        rlr_status_region_t *region = apr_array_push(status->regions);

        region->region = APR_ARRAY_IDX(names, i, const char *);
        collect_region(region, keys, pool);
    }
}

/* ---- Reading ---- */

static bool is_form(const request_rec *r)
{
    const char *type = apr_table_get(r->headers_in, "Content-Type");

    return type != NULL
        && strncasecmp(type, FORM_TYPE, sizeof(FORM_TYPE) - 1) == 0;
}

/* The fields of a POST; a status for a body that is no form, or too long. A
 * reset that asks with no body has its fields in the query. */
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

/* A browser gets the page, Prometheus its text, every other program JSON. */
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

static bool is_about_one(const rlr_status_answer_t *answer)
{
    return answer->problem != NULL || answer->verdict != NULL
        || answer->reset >= 0;
}

static void send_status(request_rec *r, format_t format,
                        const rlr_status_answer_t *answer)
{
    rlr_status_t status;

    if (answer->problem != NULL) {
        r->status = HTTP_UNPROCESSABLE_ENTITY;
    }
    /* Questions are not metrics. */
    if (format == FORMAT_METRICS && is_about_one(answer)) {
        format = FORMAT_JSON;
    }
    set_headers(r, format);
    if (format == FORMAT_JSON && is_about_one(answer)) {
        rlr_status_print_json_answer(r, answer);
        return;
    }
    collect(&status, r->pool);
    if (format == FORMAT_HTML) {
        rlr_status_print_html(r, &status, answer);
    }
    else if (format == FORMAT_METRICS) {
        rlr_status_print_metrics(r, &status);
    }
    else {
        rlr_status_print_json(r, &status);
    }
}

int rlr_status_handle(request_rec *r)
{
    rlr_status_answer_t answer;
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
    rlr_status_ask(&answer, r, form);
    send_status(r, choose_format(r, apr_table_get(form, "format")), &answer);
    return OK;
}
