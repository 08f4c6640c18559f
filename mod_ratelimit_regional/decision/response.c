/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells of a decision; see answer.h. RFC 6585 has the 429, quota.c its body,
 * draft-ietf-httpapi-ratelimit-headers the two RateLimit fields.
 */
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

#include "body.h"
#include "../private.h"

#define FILTER_NAME  "RATELIMIT_HEADERS"
#define PROBLEM_TYPE "application/problem+json"

/* Set in register_hooks. */
static ap_filter_rec_t *headers_filter;

/* ---- The access log ---- */

/* Added, not set: the table is as good as empty, and nobody else has names
 * like these. */
void rlr_answer_note(request_rec *r, const rlr_verdict_t *verdict)
{
    apr_table_t *variables = r->subprocess_env;
    const rlr_site_rule_t *rule = verdict->rule;

    apr_table_addn(
        variables, "RATELIMIT_DECISION",
        rlr_outcome_word(verdict->for_status ? RLR_EXEMPT : verdict->outcome));
    if (rule == NULL) {
        return;
    }
    apr_table_addn(variables, "RATELIMIT_RULE", rule->rule->name);
    apr_table_addn(variables, "RATELIMIT_KEY",
                   rlr_rule_key_name(rule->rule->key));
    apr_table_addn(variables, "RATELIMIT_REMAINING",
                   apr_itoa(r->pool, (int)verdict->answer.decision.remaining));
}

/* ---- The error log ---- */

/* Once a minute: the table is full, or the address has its share of it. */
static void log_overflow(request_rec *r, const rlr_verdict_t *verdict)
{
    if (verdict->answer.at_share) {
        if (rlr_limit_may_warn(verdict->site, "share")) {
            ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r,
                          RLR_LOGNO(0206) "an address has its share of the "
                                          "table: its other keys share a "
                                          "counter");
        }
    }
    else if (rlr_limit_may_warn(verdict->site, "full")) {
        ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r,
                      RLR_LOGNO(0202) "the table is full: keys without a place "
                                      "share a counter of their address; raise "
                                      "RateLimitTable");
    }
}

void rlr_answer_log(request_rec *r, const rlr_verdict_t *verdict,
                    rlr_subject_t *subject)
{
    const rlr_site_rule_t *rule = verdict->rule;

    if (rule == NULL) {
        return;
    }
    if (verdict->answer.overflow) {
        log_overflow(r, verdict);
    }
    if (!verdict->answer.first_refusal) {
        return;
    }
    ap_log_rerror(
        APLOG_MARK, APLOG_WARNING, 0, r,
        RLR_LOGNO(0201) "%s: rule %s, region %s, %s: limit %u in "
                        "%u s, the next in %u ms%s",
        verdict->outcome == RLR_REFUSED ? "refused" : "dry run",
        rule->rule->name, verdict->site->region,
        rlr_subject_describe(subject, verdict->site, rule->rule->key, r->pool),
        verdict->quota->limit.count, verdict->quota->limit.interval_sec,
        verdict->answer.decision.wait_ms,
        verdict->answer.overflow ? " (counter shared: no place)" : "");
}

/* ---- RateLimit and RateLimit-Policy ---- */

/* apr_table_setn, or, where nothing can be in the table that it would have to
 * look for, apr_table_addn. */
typedef void put_t(apr_table_t *table, const char *name, const char *value);

static void put_quota(apr_table_t *headers, put_t *put,
                      const rlr_verdict_t *verdict, apr_pool_t *pool)
{
    const rlr_quota_t *quota = verdict->quota;
    const rlr_decision_t *decision = &verdict->answer.decision;
    uint32_t more_ms = decision->admitted ? decision->reset_ms
                                          : decision->wait_ms;
    uint32_t more_sec = rlr_limit_seconds(more_ms);

    /* Rounding twice would promise more than the window is long. */
    if (decision->admitted && more_sec > quota->limit.interval_sec) {
        more_sec = quota->limit.interval_sec;
    }
    put(headers, "RateLimit-Policy", quota->policy);
    put(headers, "RateLimit",
        rlr_quota_left(quota, decision->remaining, more_sec, pool));
}

/* Scripts have theirs in the one table, proxied servers in the other. */
static void remove_quota(apr_table_t *headers)
{
    if (!apr_is_empty_table(headers)) {
        apr_table_unset(headers, "RateLimit-Policy");
        apr_table_unset(headers, "RateLimit");
    }
}

/*
 * Late, so that mod_cache has stored the response before: what is left is told
 * to the one who asked and to nobody who is served from the cache.
 */
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

void rlr_answer_promise(request_rec *r, const rlr_verdict_t *verdict)
{
    if (verdict->site->headers && verdict->outcome == RLR_ADMITTED
        && !verdict->rule->dry_run && !has_filter(r)) {
        ap_add_output_filter_handle(headers_filter, (void *)verdict, r,
                                    r->connection);
    }
}

void rlr_answer_register(void)
{
    headers_filter = ap_register_output_filter(FILTER_NAME, add_headers, NULL,
                                               AP_FTYPE_PROTOCOL - 1);
}

/* ---- 429 ---- */

/* By how much processors' clocks may differ, and rounding. */
#define HOLD_MAX_MS 16U

/*
 * Times of admissions are rounded up to a millisecond, so that no interval ever
 * has too many; who is refused before that millisecond is over would have to
 * wait for longer than the interval. The answer is held back for the rest of
 * it: then the interval is true. (A counter that keys of longer intervals share
 * may have more to wait for.)
 */
static void hold_back(rlr_verdict_t *verdict)
{
    rlr_decision_t *decision = &verdict->answer.decision;
    uint32_t interval_ms = verdict->quota->limit.interval_sec * 1000;

    if (decision->wait_ms > interval_ms
        && decision->wait_ms - interval_ms <= HOLD_MAX_MS) {
        apr_sleep(apr_time_from_msec(decision->wait_ms - interval_ms));
        decision->wait_ms = interval_ms;
    }
}

static void put_refusal(request_rec *r, const rlr_verdict_t *verdict,
                        uint32_t wait_sec)
{
    apr_table_t *headers = r->err_headers_out;
    put_t *put = apr_is_empty_table(headers) ? apr_table_addn : apr_table_setn;
    uint32_t wait_ms = verdict->answer.decision.wait_ms;

    put(headers, "Retry-After", apr_itoa(r->pool, (int)wait_sec));
    put(headers, "Retry-After-Ms", apr_itoa(r->pool, (int)wait_ms));
    put(headers, "Cache-Control", "no-store");
    if (verdict->site->headers) {
        put_quota(headers, put, verdict, r->pool);
    }
}

/*
 * The location's ErrorDocument and `Header always` count for this answer too:
 * they carry the CORS headers without which a browser shows its user nothing.
 */
static void find_location(request_rec *r, const rlr_site_t *site)
{
    const char *uri = r->uri;
    char *normal = apr_palloc(r->pool, strlen(uri) + 1);

    rlr_match_normalize(normal, uri, site->slashes);
    r->uri = normal;
    ap_location_walk(r);
    r->uri = (char *)uri;
}

/* What the location's SetHandler says, or NULL. */
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

/* An operator who is over the limit himself must still be able to see why, and
 * to reset it; who else asks is refused by `Require`. */
static bool is_status_page(request_rec *r)
{
    const char *handler = find_handler(r);

    return handler != NULL && strcmp(handler, RLR_STATUS_HANDLER) == 0;
}

static int send_problem(request_rec *r, rlr_part_t body)
{
    apr_bucket_alloc_t *alloc = r->connection->bucket_alloc;
    apr_bucket_brigade *brigade = apr_brigade_create(r->pool, alloc);

    r->status = HTTP_TOO_MANY_REQUESTS;
    r->status_line = NULL;
    ap_set_content_type(r, PROBLEM_TYPE);
    ap_run_insert_error_filter(r);
    APR_BRIGADE_INSERT_TAIL(
        brigade,
        apr_bucket_pool_create(body.text, body.length, r->pool, alloc));
    APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_eos_create(alloc));
    ap_pass_brigade(r->output_filters, brigade);
    return OK;
}

bool rlr_answer_is_for_status(request_rec *r, const rlr_verdict_t *verdict)
{
    find_location(r, verdict->site);
    if (!is_status_page(r)) {
        return false;
    }
    apr_table_setn(r->subprocess_env, "RATELIMIT_DECISION",
                   rlr_outcome_word(RLR_EXEMPT));
    return true;
}

int rlr_answer_refuse(request_rec *r, const rlr_verdict_t *verdict)
{
    rlr_verdict_t told = *verdict;
    unsigned wait_sec;

    /* Answered already: httpd completes what it has begun. */
    if (!rlr_body_drop(r)) {
        return OK;
    }
    hold_back(&told);
    wait_sec = rlr_limit_seconds(told.answer.decision.wait_ms);
    if (wait_sec == 0) {
        wait_sec = 1;
    }
    put_refusal(r, &told, wait_sec);
    if (ap_response_code_string(r, ap_index_of_response(HTTP_TOO_MANY_REQUESTS))
        != NULL) {
        return HTTP_TOO_MANY_REQUESTS;
    }
    return send_problem(r, rlr_quota_problem(told.quota, wait_sec, r->pool));
}
