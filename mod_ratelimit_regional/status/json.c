/* SPDX-License-Identifier: Apache-2.0 */
/* The status page for programs; see status.h. */
#include "status.h"

#include <apr_strings.h>
#include <http_protocol.h>

#include "../private.h"
#include "../rules/json.h"

static void print_matches(request_rec *r, const rlr_rule_t *rule)
{
    for (int i = 0; i < rule->matches->nelts; i++) {
        const rlr_match_t *match = &APR_ARRAY_IDX(rule->matches, i,
                                                  rlr_match_t);

        ap_rvputs(r, i > 0 ? "," : "", rlr_text_json(match->source, r->pool),
                  NULL);
    }
}

static void print_counters(request_rec *r, const rlr_counters_t *counters)
{
    ap_rprintf(r,
               "\"allowed\":%" APR_UINT64_T_FMT
               ",\"refused\":%" APR_UINT64_T_FMT
               ",\"would_refuse\":%" APR_UINT64_T_FMT
               ",\"overflow\":%" APR_UINT64_T_FMT,
               counters->allowed, counters->refused, counters->would_refuse,
               counters->overflow);
}

static void print_row(request_rec *r, const rlr_status_row_t *row)
{
    ap_rprintf(r, "{\"rule\":\"%s\",\"match\":[", row->rule->name);
    print_matches(r, row->rule);
    ap_rprintf(r,
               "],\"key\":\"%s\",\"count\":%u,\"interval_sec\":%u,"
               "\"category\":%s,\"engine\":\"%s\",",
               rlr_rule_key_name(row->rule->key), row->limit.count,
               row->limit.interval_sec,
               rlr_text_json(row->rule->category, r->pool), row->engine);
    print_counters(r, &row->counters);
    ap_rprintf(r, ",\"live_keys\":%u}", row->live_keys);
}

static void print_brake(request_rec *r, const rlr_status_region_t *region)
{
    if (region->brake.count == 0) {
        ap_rputs("null", r);
        return;
    }
    ap_rprintf(r,
               "{\"count\":%u,\"interval_sec\":%u,"
               "\"let_in\":%" APR_UINT64_T_FMT
               ",\"held_back\":%" APR_UINT64_T_FMT
               ",\"would_hold_back\":%" APR_UINT64_T_FMT "}",
               region->brake.count, region->brake.interval_sec,
               region->brake_counters.allowed, region->brake_counters.refused,
               region->brake_counters.would_refuse);
}

static void print_region(request_rec *r, const rlr_status_region_t *region)
{
    ap_rprintf(r, "{\"region\":\"%s\",\"new_identities\":", region->region);
    print_brake(r, region);
    ap_rputs(",\"rules\":[", r);
    for (int i = 0; i < region->rows->nelts; i++) {
        ap_rputs(i > 0 ? ",\n" : "\n", r);
        print_row(r, &APR_ARRAY_IDX(region->rows, i, rlr_status_row_t));
    }
    ap_rputs("]}", r);
}

void rlr_status_print_json(request_rec *r, const rlr_status_t *status)
{
    ap_rprintf(r,
               "{\"version\":\"" RLR_VERSION "\",\"places\":%u,"
               "\"live_keys\":%u,\"regions\":[",
               status->capacity, status->live_keys);
    for (int i = 0; i < status->regions->nelts; i++) {
        ap_rputs(i > 0 ? ",\n" : "\n", r);
        print_region(r,
                     &APR_ARRAY_IDX(status->regions, i, rlr_status_region_t));
    }
    ap_rputs("]}\n", r);
}

/* ---- Answers ---- */

static void print_target(request_rec *r, const rlr_status_answer_t *answer)
{
    const rlr_target_t *target = &answer->subject.target;

    ap_rvputs(r, "{\"region\":\"", answer->site->region,
              "\",\"method\":", rlr_text_json(target->method, r->pool),
              ",\"path\":", rlr_text_json(target->path, r->pool),
              ",\"outcome\":\"", rlr_outcome_word(answer->verdict->outcome),
              "\"", NULL);
}

static void print_verdict(request_rec *r, const rlr_status_answer_t *answer)
{
    const rlr_verdict_t *verdict = answer->verdict;
    const rlr_decision_t *decision = &verdict->answer.decision;

    print_target(r, answer);
    if (verdict->rule == NULL) {
        ap_rputs(",\"rule\":null}\n", r);
        return;
    }
    ap_rprintf(r,
               ",\"rule\":\"%s\",\"key\":\"%s\",\"identity\":\"%s\","
               "\"count\":%u,\"interval_sec\":%u,\"remaining\":%u,"
               "\"wait_ms\":%u,\"reset_ms\":%u,\"overflow\":%s}\n",
               verdict->rule->rule->name,
               rlr_rule_key_name(verdict->rule->rule->key), answer->identity,
               verdict->quota->limit.count, verdict->quota->limit.interval_sec,
               decision->remaining, decision->wait_ms, decision->reset_ms,
               verdict->answer.overflow ? "true" : "false");
}

void rlr_status_print_json_answer(request_rec *r,
                                  const rlr_status_answer_t *answer)
{
    if (answer->problem != NULL) {
        ap_rvputs(r, "{\"error\":", rlr_text_json(answer->problem, r->pool),
                  "}\n", NULL);
    }
    else if (answer->verdict != NULL) {
        print_verdict(r, answer);
    }
    else {
        ap_rprintf(r, "{\"region\":\"%s\",\"identity\":\"%s\",\"reset\":%d}\n",
                   answer->site->region, answer->identity, answer->reset);
    }
}
