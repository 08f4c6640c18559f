/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the status and the results of queries as JSON. */
#include "print.h"

#include <apr_strings.h>
#include <http_protocol.h>

#include "../private.h"
#include "../rules/json.h"

static void print_matches(request_rec *r, const rlr_rule_t *rule)
{
    for (int i = 0; i < rule->matches->nelts; i++) {
        const rlr_match_t *match = &APR_ARRAY_IDX(rule->matches, i,
                                                  rlr_match_t);

        ap_rvputs(r, i > 0 ? "," : "", rlr_json_quote(match->source, r->pool),
                  NULL);
    }
}

static void print_counters(request_rec *r, const rlr_counters_t *counters)
{
    ap_rprintf(r,
               "\"admitted\":%" APR_UINT64_T_FMT
               ",\"refused\":%" APR_UINT64_T_FMT
               ",\"would_refuse\":%" APR_UINT64_T_FMT
               ",\"overflow\":%" APR_UINT64_T_FMT,
               counters->admitted, counters->refused, counters->would_refuse,
               counters->overflow);
}

static void print_row(request_rec *r, const rlr_status_row_t *row)
{
    ap_rprintf(r, "{\"rule\":\"%s\",\"match\":[", row->rule->name);
    print_matches(r, row->rule);
    ap_rprintf(r,
               "],\"key\":\"%s\",\"count\":%u,\"interval_sec\":%u,"
               "\"category\":%s,\"engine\":\"%s\",",
               rlr_keys[row->rule->key].word, row->limit.count,
               row->limit.interval_sec,
               rlr_json_quote(row->rule->category, r->pool), row->engine);
    print_counters(r, &row->counters);
    if (row->has_live_keys) {
        ap_rprintf(r, ",\"live_keys\":%u", row->live_keys);
    }
    ap_rputs("}", r);
}

static void print_new_keys(request_rec *r, const rlr_status_region_t *region)
{
    if (region->new_keys.count == 0) {
        ap_rputs("null", r);
        return;
    }
    ap_rprintf(
        r,
        "{\"count\":%u,\"interval_sec\":%u,"
        "\"admitted\":%" APR_UINT64_T_FMT ",\"refused\":%" APR_UINT64_T_FMT
        ",\"would_refuse\":%" APR_UINT64_T_FMT "}",
        region->new_keys.count, region->new_keys.interval_sec,
        region->new_keys_counters.admitted, region->new_keys_counters.refused,
        region->new_keys_counters.would_refuse);
}

/* ---- The store ---- */

static void print_store_requests(request_rec *r,
                                 const rlr_stats_region_t *stats)
{
    if (stats == NULL) {
        ap_rputs("null", r);
        return;
    }
    for (int i = 0; i < RLR_STATS_OUTCOMES; i++) {
        ap_rprintf(r, "%s\"%s\":%" APR_UINT64_T_FMT, i > 0 ? "," : "{",
                   rlr_stats_words[i], atomic_load(&stats->requests[i]));
    }
    ap_rputs("}", r);
}

static void print_store(request_rec *r, const rlr_status_store_t *store)
{
    const rlr_message_group_t *group;
    uint64_t us;

    if (store == NULL) {
        ap_rputs("null", r);
        return;
    }
    group = &store->summary.group;
    us = atomic_load(&store->stats->round_us);
    ap_rprintf(
        r,
        "{\"host\":%s,\"state\":\"%s\",\"hosts\":%u,"
        "\"partitions\":%u,\"connected\":%u,"
        "\"starting_ms\":%" APR_UINT64_T_FMT ","
        "\"missing_hosts\":%u,\"missing_names\":%s,"
        "\"reserved_shares\":%u,\"reserved_ms\":%" APR_UINT64_T_FMT
        ",\"leases\":%u,\"leased_requests\":%" APR_UINT64_T_FMT
        ",\"table_slots\":%u,\"table_keys\":%u"
        ",\"round_trips\":%" APR_UINT64_T_FMT
        ",\"round_trips_us\":%" APR_UINT64_T_FMT
        ",\"recent_round_trip_us\":%" APR_UINT64_T_FMT
        ",\"timeout_ms\":%u,\"advised_timeout_ms\":%u"
        ",\"errors\":%" APR_UINT64_T_FMT "}",
        rlr_json_quote(store->host, r->pool), rlr_status_describe_store(store),
        store->hosts, RLR_SHARED_PARTITIONS, store->summary.connected,
        store->starting_ms, group->missing,
        rlr_json_quote(group->names, r->pool), group->reserved,
        group->reserved_ms, store->leases.keys, store->leases.unused,
        store->table_slots, store->table_keys, rlr_stats_rounds(store->stats),
        us, rlr_stats_recent_us(store->stats), store->timeout_ms,
        store->advised_ms, atomic_load(&store->stats->errors));
}

static void print_region(request_rec *r, const rlr_status_region_t *region)
{
    ap_rprintf(r, "{\"region\":\"%s\",\"new_identities\":", region->region);
    print_new_keys(r, region);
    ap_rputs(",\"store\":", r);
    print_store_requests(r, region->store);
    ap_rputs(",\"rules\":[", r);
    for (int i = 0; i < region->rows->nelts; i++) {
        ap_rputs(i > 0 ? ",\n" : "\n", r);
        print_row(r, &APR_ARRAY_IDX(region->rows, i, rlr_status_row_t));
    }
    ap_rputs("]}", r);
}

void rlr_print_json(request_rec *r, const rlr_status_t *status)
{
    ap_rprintf(r,
               "{\"version\":\"" RLR_VERSION "\",\"slots\":%u,"
               "\"live_keys\":%u,\"store\":",
               status->slots, status->live_keys);
    print_store(r, status->store);
    ap_rputs(",\"regions\":[", r);
    for (int i = 0; i < status->regions->nelts; i++) {
        ap_rputs(i > 0 ? ",\n" : "\n", r);
        print_region(r,
                     &APR_ARRAY_IDX(status->regions, i, rlr_status_region_t));
    }
    ap_rputs("]}\n", r);
}

/* ---- Queries ---- */

static void print_target(request_rec *r, const rlr_query_t *query)
{
    const rlr_target_t *target = &query->subject.target;

    ap_rvputs(r, "{\"region\":\"", query->vhost->region,
              "\",\"method\":", rlr_json_quote(target->method, r->pool),
              ",\"path\":", rlr_json_quote(target->path, r->pool),
              ",\"outcome\":\"", rlr_decide_word(query->decision->outcome),
              "\"", NULL);
}

static void print_decision(request_rec *r, const rlr_query_t *query)
{
    const rlr_decision_t *decision = query->decision;
    const rlr_window_decision_t *window = &decision->counter.window;

    print_target(r, query);
    if (decision->rule == NULL) {
        ap_rputs(",\"rule\":null}\n", r);
        return;
    }
    ap_rprintf(
        r,
        ",\"rule\":\"%s\",\"key\":\"%s\",\"identity\":\"%s\","
        "\"count\":%u,\"interval_sec\":%u,\"remaining\":%u,"
        "\"wait_ms\":%u,\"reset_ms\":%u,\"overflow\":%s}\n",
        decision->rule->rule->name, rlr_keys[decision->rule->rule->key].word,
        query->identity, decision->quota->limit.count,
        decision->quota->limit.interval_sec, window->remaining, window->wait_ms,
        window->reset_ms, decision->counter.overflow ? "true" : "false");
}

void rlr_print_json_query(request_rec *r, const rlr_query_t *query)
{
    if (query->problem != NULL) {
        ap_rvputs(r, "{\"error\":", rlr_json_quote(query->problem, r->pool),
                  "}\n", NULL);
    }
    else if (query->decision != NULL) {
        print_decision(r, query);
    }
    else {
        ap_rprintf(r, "{\"region\":\"%s\",\"identity\":\"%s\",\"reset\":%d}\n",
                   query->vhost->region, query->identity, query->reset);
    }
}
