/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the status page as HTML, without scripts, in one response. */
#include "print.h"

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
    ".tile,form,.result,.table{background:var(--card);"
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
    ".result{padding:12px 18px;margin:18px 0;border-left:5px solid "
    "var(--accent)}"
    ".result.no{border-left-color:var(--bad)}";

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

            sum.admitted += counters->admitted;
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
    print_tile(r, "admitted", sum.admitted, "");
    print_tile(r, "refused", sum.refused, "");
    print_tile(r, "would refuse", sum.would_refuse, "(dry run)");
    print_tile(r, "live keys", status->live_keys,
               apr_psprintf(r->pool, "of %u slots", status->slots));
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

static void print_refusal_rate(request_rec *r, const rlr_counters_t *counters)
{
    uint64_t refused = counters->refused + counters->would_refuse;

    if (refused == 0) {
        ap_rputs("<td></td>", r);
        return;
    }
    ap_rprintf(r, "<td class=\"n %s\">%.1f %%</td>",
               counters->refused > 0 ? "bad" : "dry",
               100.0 * (double)refused
                   / (double)(counters->admitted + refused));
}

/* Rules without requests are greyed. */
static bool is_idle(const rlr_status_row_t *row)
{
    return row->counters.admitted == 0 && row->counters.refused == 0
        && row->counters.would_refuse == 0;
}

/* The engine of a rule, unless it is on. */
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
               rlr_keys[row->rule->key].word, row->limit.count,
               row->limit.interval_sec);
    print_count(r, counters->admitted, "");
    print_count(r, counters->refused, "bad");
    print_count(r, counters->would_refuse, "dry");
    print_refusal_rate(r, counters);
    if (row->has_live_keys) {
        print_count(r, row->live_keys, "");
    }
    else {
        ap_rputs("<td></td>", r);
    }
    print_count(r, counters->overflow, "bad");
    ap_rputs("</tr>\n", r);
}

static void print_region(request_rec *r, const rlr_status_region_t *region)
{
    ap_rprintf(r,
               "<h2>Region <b>%s</b> <small>%d rules, first match decides"
               "</small></h2>\n",
               region->region, region->rows->nelts);
    if (region->new_keys.count != 0) {
        ap_rprintf(r,
                   "<p class=soft>New keys: %u in %u s per address; "
                   "%" APR_UINT64_T_FMT " admitted, %" APR_UINT64_T_FMT
                   " refused, %" APR_UINT64_T_FMT
                   " would be refused (dry run).</p>\n",
                   region->new_keys.count, region->new_keys.interval_sec,
                   region->new_keys_counters.admitted,
                   region->new_keys_counters.refused,
                   region->new_keys_counters.would_refuse);
    }
    ap_rputs(
        "<div class=table><table><tr><th>Rule<th>Match<th>Key"
        "<th class=n>Limit<th class=n>Admitted<th class=n>Refused"
        "<th class=n>Would refuse<th class=n>Refusal rate<th class=n>Live keys"
        "<th class=n>Overflow</tr>\n",
        r);
    for (int i = 0; i < region->rows->nelts; i++) {
        print_row(r, &APR_ARRAY_IDX(region->rows, i, rlr_status_row_t));
    }
    ap_rputs("</table></div>\n", r);
}

/* ---- The store ---- */

static void print_store_requests(request_rec *r, const rlr_status_t *status)
{
    ap_rputs("<div class=table><table><tr><th>Region"
             "<th class=n>Leased<th class=n>Refused by last reply"
             "<th class=n>By the store<th class=n>Store late"
             "<th class=n>Too many wait<th class=n>Store away"
             "<th class=n>Alone: admitted<th class=n>Alone: refused"
             "</tr>\n",
             r);
    for (int i = 0; i < status->regions->nelts; i++) {
        const rlr_status_region_t *region = &APR_ARRAY_IDX(status->regions, i,
                                                           rlr_status_region_t);

        ap_rprintf(r, "<tr><td><b>%s</b></td>", region->region);
        for (int k = 0; k < RLR_STATS_OUTCOMES; k++) {
            print_count(r, atomic_load(&region->store->requests[k]),
                        rlr_stats_is_decided((rlr_stats_outcome_t)k) ? ""
                                                                     : "bad");
        }
        ap_rputs("</tr>\n", r);
    }
    ap_rputs("</table></div>\n", r);
}

/* Hosts that are missing, and the shares that are not granted for them. */
static void print_missing(request_rec *r, const rlr_status_store_t *store)
{
    const rlr_message_group_t *group = &store->summary.group;

    if (group->missing == 0 && group->reserved == 0) {
        return;
    }
    ap_rprintf(r,
               "<p class=bad>%u of %u hosts are not connected to the store "
               "%s; it reserves the shares of %u, for up to %" APR_UINT64_T_FMT
               " s and the rule's interval.</p>\n",
               group->missing, store->hosts,
               ap_escape_html(r->pool, group->names), group->reserved,
               group->reserved_ms / 1000);
}

static void print_advice(request_rec *r, const rlr_status_store_t *store)
{
    if (store->advised_ms > 0) {
        ap_rprintf(r,
                   "<p class=bad>A round trip to the store took %.1f ms of "
                   "late, too long for a timeout of %u ms: requests under a "
                   "limit up to 64 are refused, all if it takes longer. Set "
                   "RateLimitStoreTimeout to %ums.</p>\n",
                   (double)rlr_stats_recent_us(store->stats) / 1000,
                   store->timeout_ms, store->advised_ms);
    }
}

static void print_start(request_rec *r, const rlr_status_store_t *store)
{
    if (store->starting_ms > 0) {
        ap_rprintf(r,
                   "<p class=bad>The hosts have just started: nothing is "
                   "admitted under a rule until its interval has passed, under "
                   "the longest for %" APR_UINT64_T_FMT " s more.</p>\n",
                   (store->starting_ms + 999) / 1000);
    }
}

static void print_store(request_rec *r, const rlr_status_t *status)
{
    const rlr_status_store_t *store = status->store;
    uint64_t rounds;

    if (store == NULL) {
        return;
    }
    rounds = rlr_stats_rounds(store->stats);
    ap_rprintf(r,
               "<h2>Store <b>%s</b> <small>of this host, %s, one of %u; "
               "connected to %u of %u partitions</small></h2>\n"
               "<div class=tiles>\n",
               rlr_status_describe_store(store),
               ap_escape_html(r->pool, store->host), store->hosts,
               store->summary.connected, RLR_SHARED_PARTITIONS);
    print_tile(r, "leases", store->leases.keys,
               apr_psprintf(r->pool, "for %" APR_UINT64_T_FMT " requests",
                            store->leases.unused));
    print_tile(r, "keys asked for", store->table_keys,
               apr_psprintf(r->pool, "of %u slots", store->table_slots));
    print_tile(r, "round trips", rounds, "");
    print_tile(r, "microseconds each",
               rounds > 0 ? atomic_load(&store->stats->round_us) / rounds : 0,
               apr_psprintf(r->pool, "of late %" APR_UINT64_T_FMT,
                            rlr_stats_recent_us(store->stats)));
    print_tile(r, "errors", atomic_load(&store->stats->errors), "");
    ap_rputs("</div>\n", r);
    print_advice(r, store);
    print_start(r, store);
    print_missing(r, store);
    print_store_requests(r, status);
}

/* ---- Queries ---- */

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

/* Inputs for all keys and the address. */
static void print_key_inputs(request_rec *r)
{
    for (int key = 0; key < RLR_KEYS; key++) {
        const rlr_key_row_t *row = &rlr_keys[key];

        ap_rvputs(r, "<label>", row->label, "<input name=", row->field,
                  row->header != NULL
                      ? " autocomplete=off placeholder=\"or sha256:...\""
                      : " size=14",
                  "></label>\n", NULL);
    }
}

static void print_forms(request_rec *r, const rlr_status_t *status)
{
    ap_rputs("<h2>Which rule does a request match, and what is left? "
             "<small>Queries are free.</small></h2>\n"
             "<form method=post><input type=hidden name=action value=ask>"
             "<input type=hidden name=format value=html>\n",
             r);
    print_regions(r, status);
    ap_rputs("<label>Method<input name=method value=GET size=8></label>\n"
             "<label>Path<input name=path required placeholder=\"/runs/query"
             "\"></label>\n",
             r);
    print_key_inputs(r);
    ap_rputs("<button>Ask</button></form>\n"
             "<h2>Reset a key</h2>\n"
             "<form method=post><input type=hidden name=action value=reset>"
             "<input type=hidden name=format value=html>\n",
             r);
    print_regions(r, status);
    ap_rputs("<label>Rule<input name=rule placeholder=\"all with that key\">"
             "</label>\n",
             r);
    print_key_inputs(r);
    ap_rputs("<button>Reset</button></form>\n", r);
}

static void print_decision(request_rec *r, const rlr_query_t *query)
{
    const rlr_decision_t *decision = query->decision;
    const rlr_window_decision_t *window = &decision->counter.window;

    ap_rprintf(r, "<div class=\"result%s\"><code>%s %s</code> in %s: <b>%s</b>",
               decision->outcome == RLR_REFUSED ? " no" : "",
               ap_escape_html(r->pool, query->subject.target.method),
               ap_escape_html(r->pool, query->subject.target.path),
               query->vhost->region, rlr_decide_word(decision->outcome));
    if (decision->rule != NULL) {
        ap_rprintf(r,
                   " by rule <b>%s</b> (%u / %u s), counted by %s: <b>%u</b> "
                   "left%s",
                   decision->rule->rule->name, decision->quota->limit.count,
                   decision->quota->limit.interval_sec, query->identity,
                   window->remaining,
                   window->admitted
                       ? ""
                       : apr_psprintf(r->pool, ", the next in %u s",
                                      rlr_quota_seconds(window->wait_ms)));
    }
    ap_rputs("</div>\n", r);
}

static void print_query(request_rec *r, const rlr_query_t *query)
{
    if (query->problem != NULL) {
        ap_rvputs(r, "<div class=\"result no\">",
                  ap_escape_html(r->pool, query->problem), "</div>\n", NULL);
    }
    else if (query->decision != NULL) {
        print_decision(r, query);
    }
    else if (query->reset >= 0) {
        ap_rprintf(r, "<div class=result>%s: %d counters reset</div>\n",
                   query->identity, query->reset);
    }
}

void rlr_print_html(request_rec *r, const rlr_status_t *status,
                    const rlr_query_t *query)
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
    print_query(r, query);
    print_tiles(r, status);
    for (int i = 0; i < status->regions->nelts; i++) {
        print_region(r,
                     &APR_ARRAY_IDX(status->regions, i, rlr_status_region_t));
    }
    print_store(r, status);
    print_forms(r, status);
    ap_rputs("</main></body></html>\n", r);
}
