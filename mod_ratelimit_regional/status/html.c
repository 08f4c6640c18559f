/* SPDX-License-Identifier: Apache-2.0 */
/* The status page for people; see status.h. No script, one request. */
#include "status.h"

#include <string.h>

#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>

#include "../private.h"

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--line:#dfe3e8;"
    "--back:#f6f7f9;--card:#fff;--good:#1a7f4b;--bad:#c0392b;--dry:#a66a00;"
    "--accent:#2b5fd9}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa5b4;"
    "--line:#323a46;--back:#14181e;--card:#1c222b;--good:#4cc38a;--bad:#ff7b6b;"
    "--dry:#e0a63b;--accent:#7aa2ff}}"
    "body{margin:0;background:var(--back);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}"
    "main{max-width:1200px;margin:0 auto;padding:24px}"
    "h1{font-size:22px;margin:0}h2{font-size:17px;margin:32px 0 10px}"
    "h2 b{color:var(--accent)}"
    ".soft,small{color:var(--soft)}"
    ".tiles{display:flex;flex-wrap:wrap;gap:12px;margin:18px 0}"
    ".tile,form,.answer,.table{background:var(--card);"
    "border:1px solid var(--line);border-radius:10px}"
    ".tile{padding:10px 18px;min-width:120px}"
    ".tile b{display:block;font-size:24px;font-variant-numeric:tabular-nums}"
    ".table{overflow-x:auto}"
    "table{border-collapse:collapse;width:100%}"
    "th{color:var(--soft);font-weight:600;font-size:13px;text-align:left;"
    "white-space:nowrap}"
    "th,td{padding:5px 12px;border-bottom:1px solid var(--line);"
    "vertical-align:top}"
    "tr:last-child td{border-bottom:0}"
    ".n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".zero{color:var(--soft)}.bad{color:var(--bad);font-weight:600}"
    ".dry{color:var(--dry);font-weight:600}.good{color:var(--good)}"
    "td small{line-height:1.3}code{font:13px "
    "ui-monospace,monospace;white-space:nowrap}"
    ".idle,.idle td>b{color:var(--soft);font-weight:400}a{color:var(--accent)}"
    "form{padding:12px 16px;display:flex;flex-wrap:wrap;gap:10px;"
    "align-items:end}"
    "label{display:grid;font-size:13px;color:var(--soft)}"
    "input,select,button{font:inherit;padding:5px 9px;border-radius:7px;"
    "border:1px solid var(--line);background:var(--back);color:var(--ink)}"
    "button{background:var(--accent);border-color:var(--accent);color:#fff;"
    "cursor:pointer}"
    ".answer{padding:12px 18px;margin:18px 0;border-left:5px solid "
    "var(--accent)}"
    ".answer.no{border-left-color:var(--bad)}";

/* ---- Numbers ---- */

static void print_tile(request_rec *r, const char *name, uint64_t value,
                       const char *note)
{
    ap_rprintf(r,
               "<div class=tile><b>%" APR_UINT64_T_FMT
               "</b>%s <small>%s</small></div>\n",
               value, name, note);
}

static rlr_counters_t sum_up(const rlr_status_t *status)
{
    rlr_counters_t sum = {0, 0, 0, 0};

    for (int i = 0; i < status->regions->nelts; i++) {
        const apr_array_header_t
            *rows = APR_ARRAY_IDX(status->regions, i, rlr_status_region_t).rows;

        for (int k = 0; k < rows->nelts; k++) {
            const rlr_counters_t
                *counters = &APR_ARRAY_IDX(rows, k, rlr_status_row_t).counters;

            sum.allowed += counters->allowed;
            sum.refused += counters->refused;
            sum.would_refuse += counters->would_refuse;
            sum.overflow += counters->overflow;
        }
    }
    return sum;
}

static void print_tiles(request_rec *r, const rlr_status_t *status)
{
    rlr_counters_t sum = sum_up(status);

    ap_rputs("<div class=tiles>\n", r);
    print_tile(r, "allowed", sum.allowed, "");
    print_tile(r, "refused", sum.refused, "");
    print_tile(r, "would refuse", sum.would_refuse, "(dry run)");
    print_tile(r, "live keys", status->live_keys,
               apr_psprintf(r->pool, "of %u places", status->capacity));
    print_tile(r, "overflow", sum.overflow,
               sum.overflow > 0 ? "raise RateLimitTable" : "");
    ap_rputs("</div>\n", r);
}

/* ---- Rules ---- */

static void print_count(request_rec *r, uint64_t value, const char *style_class)
{
    ap_rprintf(r, "<td class=\"n %s\">%" APR_UINT64_T_FMT "</td>",
               value == 0 ? "zero" : style_class, value);
}

static void print_matches(request_rec *r, const rlr_rule_t *rule)
{
    for (int i = 0; i < rule->matches->nelts; i++) {
        const rlr_match_t *match = &APR_ARRAY_IDX(rule->matches, i,
                                                  rlr_match_t);

        ap_rvputs(r, i > 0 ? "<br>" : "", "<code>",
                  ap_escape_html(r->pool, match->source), "</code>", NULL);
    }
}

static void print_share(request_rec *r, const rlr_counters_t *counters)
{
    uint64_t refused = counters->refused + counters->would_refuse;

    if (refused == 0) {
        ap_rputs("<td></td>", r);
        return;
    }
    ap_rprintf(r, "<td class=\"n %s\">%.1f %%</td>",
               counters->refused > 0 ? "bad" : "dry",
               100.0 * (double)refused / (double)(counters->allowed + refused));
}

/* Rules that nobody has hit stand back. */
static bool is_idle(const rlr_status_row_t *row)
{
    return row->counters.allowed == 0 && row->counters.refused == 0
        && row->counters.would_refuse == 0;
}

/* What is worth saying of a rule that is not simply on. */
static const char *describe_engine(const rlr_status_row_t *row,
                                   apr_pool_t *pool)
{
    return strcmp(row->engine, "on") == 0
        ? ""
        : apr_pstrcat(pool, " &middot; <b class=dry>", row->engine, "</b>",
                      NULL);
}

static void print_row(request_rec *r, const rlr_status_row_t *row)
{
    const rlr_counters_t *counters = &row->counters;

    ap_rprintf(r, "<tr%s><td><b>%s</b><br><small>%s%s</small></td><td>",
               is_idle(row) ? " class=idle" : "", row->rule->name,
               ap_escape_html(r->pool, row->rule->category),
               describe_engine(row, r->pool));
    print_matches(r, row->rule);
    ap_rprintf(r, "</td><td>%s</td><td class=n>%u / %u s</td>",
               rlr_rule_key_name(row->rule->key), row->limit.count,
               row->limit.interval_sec);
    print_count(r, counters->allowed, "");
    print_count(r, counters->refused, "bad");
    print_count(r, counters->would_refuse, "dry");
    print_share(r, counters);
    print_count(r, row->live_keys, "");
    print_count(r, counters->overflow, "bad");
    ap_rputs("</tr>\n", r);
}

static void print_region(request_rec *r, const rlr_status_region_t *region)
{
    ap_rprintf(r,
               "<h2>Region <b>%s</b> <small>%d rules, first match decides"
               "</small></h2>\n",
               region->region, region->rows->nelts);
    if (region->brake.count != 0) {
        ap_rprintf(r,
                   "<p class=soft>New keys: %u in %u s an address; "
                   "%" APR_UINT64_T_FMT " let in, %" APR_UINT64_T_FMT
                   " held back, %" APR_UINT64_T_FMT
                   " would have been (dry run).</p>\n",
                   region->brake.count, region->brake.interval_sec,
                   region->brake_counters.allowed,
                   region->brake_counters.refused,
                   region->brake_counters.would_refuse);
    }
    ap_rputs("<div class=table><table><tr><th>Rule<th>Match<th>Key"
             "<th class=n>Limit<th class=n>Allowed<th class=n>Refused"
             "<th class=n>Would refuse<th class=n>Share<th class=n>Live keys"
             "<th class=n>Overflow</tr>\n",
             r);
    for (int i = 0; i < region->rows->nelts; i++) {
        print_row(r, &APR_ARRAY_IDX(region->rows, i, rlr_status_row_t));
    }
    ap_rputs("</table></div>\n", r);
}

/* ---- Questions ---- */

static void print_regions(request_rec *r, const rlr_status_t *status)
{
    ap_rputs("<label>Region<select name=region>", r);
    for (int i = 0; i < status->regions->nelts; i++) {
        ap_rvputs(r, "<option>",
                  APR_ARRAY_IDX(status->regions, i, rlr_status_region_t).region,
                  "</option>", NULL);
    }
    ap_rputs("</select></label>\n", r);
}

static void print_forms(request_rec *r, const rlr_status_t *status)
{
    static const char who[] =
        "<label>API key<input name=api-key autocomplete=off "
        "placeholder=\"key or sha256:...\"></label>\n"
        "<label>User id<input name=user autocomplete=off></label>\n"
        "<label>Address<input name=ip size=14></label>\n";

    ap_rputs("<h2>Which rule would this request hit, and what is left? "
             "<small>The question does not count.</small></h2>\n"
             "<form method=post><input type=hidden name=action value=ask>"
             "<input type=hidden name=format value=html>\n",
             r);
    print_regions(r, status);
    ap_rvputs(r,
              "<label>Method<input name=method value=GET size=8></label>\n"
              "<label>Path<input name=path required placeholder=\"/runs/query"
              "\"></label>\n",
              who, "<button>Ask</button></form>\n",
              "<h2>Forget what a key was charged</h2>\n"
              "<form method=post><input type=hidden name=action value=reset>"
              "<input type=hidden name=format value=html>\n",
              NULL);
    print_regions(r, status);
    ap_rvputs(r,
              "<label>Rule<input name=rule placeholder=\"all with that key\">"
              "</label>\n",
              who, "<button>Reset</button></form>\n", NULL);
}

static void print_verdict(request_rec *r, const rlr_status_answer_t *answer)
{
    const rlr_verdict_t *verdict = answer->verdict;
    const rlr_decision_t *decision = &verdict->answer.decision;

    ap_rprintf(r, "<div class=\"answer%s\"><code>%s %s</code> in %s: <b>%s</b>",
               verdict->outcome == RLR_REFUSED ? " no" : "",
               ap_escape_html(r->pool, answer->subject.target.method),
               ap_escape_html(r->pool, answer->subject.target.path),
               answer->site->region, rlr_outcome_word(verdict->outcome));
    if (verdict->rule != NULL) {
        ap_rprintf(r,
                   " by rule <b>%s</b> (%u / %u s), counted by %s: <b>%u</b> "
                   "left%s",
                   verdict->rule->rule->name, verdict->quota->limit.count,
                   verdict->quota->limit.interval_sec, answer->identity,
                   decision->remaining,
                   decision->admitted
                       ? ""
                       : apr_psprintf(r->pool, ", the next in %u s",
                                      rlr_limit_seconds(decision->wait_ms)));
    }
    ap_rputs("</div>\n", r);
}

static void print_answer(request_rec *r, const rlr_status_answer_t *answer)
{
    if (answer->problem != NULL) {
        ap_rvputs(r, "<div class=\"answer no\">",
                  ap_escape_html(r->pool, answer->problem), "</div>\n", NULL);
    }
    else if (answer->verdict != NULL) {
        print_verdict(r, answer);
    }
    else if (answer->reset >= 0) {
        ap_rprintf(r, "<div class=answer>%s: %d counters reset</div>\n",
                   answer->identity, answer->reset);
    }
}

void rlr_status_print_html(request_rec *r, const rlr_status_t *status,
                           const rlr_status_answer_t *answer)
{
    ap_rvputs(r,
              "<!doctype html><html lang=en><head><meta charset=utf-8>"
              "<meta name=viewport content=\"width=device-width\">"
              "<title>Rate limits</title><style>",
              style,
              "</style></head><body><main>\n<h1>Rate limits</h1>"
              "<small>",
              ap_escape_html(r->pool, ap_get_server_name(r)),
              " &middot; counted since the first start &middot; "
              "<a href=\"?format=json\">JSON</a> &middot; "
              "<a href=\"?format=prometheus\">Prometheus</a></small>\n",
              NULL);
    print_answer(r, answer);
    print_tiles(r, status);
    for (int i = 0; i < status->regions->nelts; i++) {
        print_region(r,
                     &APR_ARRAY_IDX(status->regions, i, rlr_status_region_t));
    }
    print_forms(r, status);
    ap_rputs("</main></body></html>\n", r);
}
