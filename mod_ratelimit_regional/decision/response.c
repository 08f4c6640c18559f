/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a decision: the 429 of RFC 6585, the RateLimit fields of
 * draft-ietf-httpapi-ratelimit-headers, and log lines. rules/quota.c writes the
 * values of the fields and the body. */
#include "response.h"

#include <string.h>

#include <apr_buckets.h>
#include <apr_strings.h>
#include <ap_expr.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mod_core.h>
#include <util_filter.h>

#include "../private.h"
#include "body.h"
#include "warning.h"

#define FILTER_NAME  "RATELIMIT_HEADERS"
#define PROBLEM_TYPE "application/problem+json"

/* Set in register_hooks. */
static ap_filter_rec_t *headers_filter;

/* ---- The access log ---- */

#define DECISION_VARIABLE "RATELIMIT_DECISION"

/* apr_table_addn() is faster than a set; no other module sets variables with
 * these names. */
void rlr_response_set_environment(request_rec *r,
                                  const rlr_decision_t *decision)
{
    apr_table_t *variables = r->subprocess_env;
    const rlr_vhost_rule_t *rule = decision->rule;

    apr_table_addn(
        variables, DECISION_VARIABLE,
        rlr_decide_word(decision->for_status ? RLR_EXEMPT : decision->outcome));
    if (rule == NULL) {
        return;
    }
    apr_table_addn(variables, "RATELIMIT_RULE", rule->rule->name);
    apr_table_addn(variables, "RATELIMIT_KEY", rlr_keys[rule->rule->key].word);
    apr_table_addn(variables, "RATELIMIT_REMAINING",
                   apr_itoa(r->pool, (int)decision->counter.window.remaining));
}

void rlr_response_set_outcome(request_rec *r, rlr_outcome_t outcome)
{
    apr_table_setn(r->subprocess_env, DECISION_VARIABLE,
                   rlr_decide_word(outcome));
}

/* ---- The error log ---- */

/* mod_agent sets it for the key of a customer of another region: only the
 * region may log the address, the referer or the path. */
static bool is_of_other_region(const request_rec *r)
{
    return apr_table_get(r->notes, "agent_wrong_region") != NULL;
}

static void warn(request_rec *r, const char *text)
{
    if (is_of_other_region(r)) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, r->server, "%s", text);
    }
    else {
        ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r, "%s", text);
    }
}

/* Once a minute: the table is full, or the address holds its share of it. */
static void log_overflow(request_rec *r, const rlr_decision_t *decision)
{
    if (decision->counter.at_share) {
        if (rlr_warning_is_due(decision->vhost, "share")) {
            warn(r,
                 RLR_LOGNO(0206) "an address has its share of the table: "
                                 "its other keys share a counter, or are "
                                 "refused with a store");
        }
    }
    else if (rlr_warning_is_due(decision->vhost, "full")) {
        warn(r,
             RLR_LOGNO(0202) "the table is full: keys without a slot share "
                             "a counter of their address, or are refused "
                             "with a store; raise RateLimitTable");
    }
}

void rlr_response_log(request_rec *r, const rlr_decision_t *decision,
                      rlr_subject_t *subject)
{
    const rlr_vhost_rule_t *rule = decision->rule;

    if (rule == NULL) {
        return;
    }
    if (decision->counter.overflow) {
        log_overflow(r, decision);
    }
    if (!decision->counter.first_refusal) {
        return;
    }
    warn(r,
         apr_psprintf(
             r->pool,
             RLR_LOGNO(0201) "%s: rule %s, region %s, %s: limit %u in "
                             "%u s, the next in %u ms%s",
             decision->outcome == RLR_REFUSED ? "refused" : "dry run",
             rule->rule->name, decision->vhost->region,
             is_of_other_region(r)
                 ? "a key of another region"
                 : rlr_subject_describe(subject, decision->vhost,
                                        rule->rule->key, r->pool),
             decision->quota->limit.count, decision->quota->limit.interval_sec,
             decision->counter.window.wait_ms,
             decision->counter.overflow ? " (shared counter: no slot)" : ""));
}

/* ---- RateLimit and RateLimit-Policy ---- */

/* apr_table_setn, or apr_table_addn for a table without these names. */
typedef void put_t(apr_table_t *table, const char *name, const char *value);

static void put_quota(apr_table_t *headers, put_t *put,
                      const rlr_decision_t *decision, apr_pool_t *pool)
{
    const rlr_quota_t *quota = decision->quota;
    const rlr_window_decision_t *window = &decision->counter.window;
    uint32_t reset_ms = window->admitted ? window->reset_ms : window->wait_ms;
    uint32_t reset_sec = rlr_quota_seconds(reset_ms);

    /* Rounded twice, the time could exceed the interval. */
    if (window->admitted && reset_sec > quota->limit.interval_sec) {
        reset_sec = quota->limit.interval_sec;
    }
    put(headers, "RateLimit-Policy", quota->policy);
    put(headers, "RateLimit",
        rlr_quota_remaining(quota, window->remaining, reset_sec, pool));
}

/* Scripts set headers in the one table, proxied servers in the other. */
static void remove_quota(apr_table_t *headers)
{
    if (!apr_is_empty_table(headers)) {
        apr_table_unset(headers, "RateLimit-Policy");
        apr_table_unset(headers, "RateLimit");
    }
}

/* Runs after mod_cache has stored the response, so that a cached response does
 * not carry another client's quota. */
static apr_status_t add_headers(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    remove_quota(f->r->err_headers_out);
    put_quota(f->r->headers_out, apr_table_setn, f->ctx, f->r->pool);
    ap_remove_output_filter(f);
    return ap_pass_brigade(f->next, brigade);
}

static bool has_filter(const request_rec *r)
{
    const ap_filter_t *filter = r->output_filters;

    while (filter != NULL && filter->frec != headers_filter) {
        filter = filter->next;
    }
    return filter != NULL;
}

void rlr_response_add_headers(request_rec *r, const rlr_decision_t *decision)
{
    if (decision->vhost->headers && decision->outcome == RLR_ADMITTED
        && !decision->rule->dry_run && !has_filter(r)) {
        ap_add_output_filter_handle(headers_filter, (void *)decision, r,
                                    r->connection);
    }
}

void rlr_response_register(void)
{
    headers_filter = ap_register_output_filter(FILTER_NAME, add_headers, NULL,
                                               AP_FTYPE_PROTOCOL - 1);
}

/* ---- 429 ---- */

/* Longest delay of a refusal: rounding, and the difference between the clocks
 * of processors. */
#define DELAY_MAX_MS 16U

/*
 * Delays a refusal that comes within a millisecond of the admission for whose
 * expiry the client must wait. Times of admissions are rounded up to a
 * millisecond, so that no interval has too many; a wait computed in the same
 * millisecond would exceed the interval. (A counter that is shared with keys of
 * longer intervals may require a longer wait.)
 */
static void delay_refusal(rlr_decision_t *decision)
{
    rlr_window_decision_t *window = &decision->counter.window;
    uint32_t interval_ms = decision->quota->limit.interval_sec * 1000;

    if (window->wait_ms > interval_ms
        && window->wait_ms - interval_ms <= DELAY_MAX_MS) {
        apr_sleep(apr_time_from_msec(window->wait_ms - interval_ms));
        window->wait_ms = interval_ms;
    }
}

static void put_refusal(request_rec *r, const rlr_decision_t *decision,
                        uint32_t wait_sec)
{
    apr_table_t *headers = r->err_headers_out;
    put_t *put = apr_is_empty_table(headers) ? apr_table_addn : apr_table_setn;
    uint32_t wait_ms = decision->counter.window.wait_ms;

    put(headers, "Retry-After", apr_itoa(r->pool, (int)wait_sec));
    put(headers, "Retry-After-Ms", apr_itoa(r->pool, (int)wait_ms));
    put(headers, "Cache-Control", "no-store");
    if (decision->vhost->headers) {
        put_quota(headers, put, decision, r->pool);
    }
}

/* Applies the location's ErrorDocument and `Header always` to the refusal.
 * They carry the CORS headers, without which a browser hides the response. */
static void find_location(request_rec *r, const rlr_vhost_t *vhost)
{
    const char *uri = r->uri;
    char *normal = apr_palloc(r->pool, strlen(uri) + 1);

    rlr_match_normalize(normal, uri, vhost->slashes);
    r->uri = normal;
    ap_location_walk(r);
    r->uri = (char *)uri;
}

/* The handler of the location's SetHandler, or NULL. */
static const char *find_handler(request_rec *r)
{
    const core_dir_config *core = ap_get_core_module_config(r->per_dir_config);
    const char *problem = NULL;
    const char *handler;

    if (core->expr_handler == NULL) {
        return NULL;
    }
    handler = ap_expr_str_exec(r, core->expr_handler, &problem);
    return problem == NULL ? handler : NULL;
}

static int send_problem(request_rec *r, rlr_text_t body)
{
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, alloc);

    r->status = HTTP_TOO_MANY_REQUESTS;
    r->status_line = NULL;
    ap_set_content_type(r, PROBLEM_TYPE);
    ap_run_insert_error_filter(r);
    APR_BRIGADE_INSERT_TAIL(
        brigade,
        apr_bucket_pool_create(body.bytes, body.length, r->pool, alloc));
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(alloc));
    ap_pass_brigade(r->output_filters, brigade);
    return OK;
}

bool rlr_response_is_for_status(request_rec *r, const rlr_decision_t *decision)
{
    const char *handler;

    find_location(r, decision->vhost);
    handler = find_handler(r);
    return handler != NULL && strcmp(handler, RLR_STATUS_HANDLER) == 0;
}

int rlr_response_refuse(request_rec *r, const rlr_decision_t *decision)
{
    rlr_decision_t sent = *decision;
    unsigned wait_sec;

    /* httpd has sent a response already. */
    if (!rlr_body_drop(r)) {
        return OK;
    }
    delay_refusal(&sent);
    wait_sec = rlr_quota_seconds(sent.counter.window.wait_ms);
    if (wait_sec == 0) {
        wait_sec = 1;
    }
    put_refusal(r, &sent, wait_sec);
    if (ap_response_code_string(r, ap_index_of_response(HTTP_TOO_MANY_REQUESTS))
        != NULL) {
        return HTTP_TOO_MANY_REQUESTS;
    }
    return send_problem(r, rlr_quota_problem(sent.quota, wait_sec, r->pool));
}
