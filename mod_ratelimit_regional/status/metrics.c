/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the counters in the text format of Prometheus. Keys are not labels,
 * so that the number of series is bounded by the rules. */
#include "print.h"

#include <http_protocol.h>

#include "../private.h"

/* Prints one line of a metric for a row. */
typedef void print_row_t(request_rec *r, const char *region,
                         const rlr_status_row_t *row);

static void print_labels(request_rec *r, const char *metric, const char *region,
                         const rlr_status_row_t *row)
{
    ap_rvputs(r, metric, "{region=\"", region, "\",rule=\"", row->rule->name,
              "\",key=\"", rlr_keys[row->rule->key].word, "\"", NULL);
}

static void print_decision(request_rec *r, const char *region,
                           const rlr_status_row_t *row, const char *decision,
                           uint64_t value)
{
    print_labels(r, "ratelimit_requests_total", region, row);
    ap_rprintf(r, ",decision=\"%s\"} %" APR_UINT64_T_FMT "\n", decision, value);
}

static void print_requests(request_rec *r, const char *region,
                           const rlr_status_row_t *row)
{
    const rlr_counters_t *counters = &row->counters;

    print_decision(r, region, row, "admitted", counters->admitted);
    print_decision(r, region, row, "refused", counters->refused);
    print_decision(r, region, row, "would_refuse", counters->would_refuse);
}

static void print_overflow(request_rec *r, const char *region,
                           const rlr_status_row_t *row)
{
    print_labels(r, "ratelimit_overflow_total", region, row);
    ap_rprintf(r, "} %" APR_UINT64_T_FMT "\n", row->counters.overflow);
}

static void print_keys(request_rec *r, const char *region,
                       const rlr_status_row_t *row)
{
    if (row->has_live_keys) {
        print_labels(r, "ratelimit_live_keys", region, row);
        ap_rprintf(r, "} %u\n", row->live_keys);
    }
}

static void print_quota(request_rec *r, const char *region,
                        const rlr_status_row_t *row)
{
    print_labels(r, "ratelimit_limit_requests", region, row);
    ap_rprintf(r, ",interval=\"%us\"} %u\n", row->limit.interval_sec,
               row->limit.count);
}

static void print_metric(request_rec *r, const rlr_status_t *status,
                         const char *head, print_row_t *print_row)
{
    ap_rputs(head, r);
    for (int i = 0; i < status->regions->nelts; i++) {
        const rlr_status_region_t *region = &APR_ARRAY_IDX(status->regions, i,
                                                           rlr_status_region_t);

        for (int k = 0; k < region->rows->nelts; k++) {
            print_row(r, region->region,
                      &APR_ARRAY_IDX(region->rows, k, rlr_status_row_t));
        }
    }
}

static void print_new_key_metrics(request_rec *r, const rlr_status_t *status)
{
    ap_rputs(
        "# HELP ratelimit_new_identities_total New keys by the decision of "
        "RateLimitNewIdentities.\n"
        "# TYPE ratelimit_new_identities_total counter\n",
        r);
    for (int i = 0; i < status->regions->nelts; i++) {
        const rlr_status_region_t *region = &APR_ARRAY_IDX(status->regions, i,
                                                           rlr_status_region_t);

        ap_rprintf(r,
                   "ratelimit_new_identities_total{region=\"%s\","
                   "decision=\"admitted\"} %" APR_UINT64_T_FMT "\n"
                   "ratelimit_new_identities_total{region=\"%s\","
                   "decision=\"refused\"} %" APR_UINT64_T_FMT "\n"
                   "ratelimit_new_identities_total{region=\"%s\","
                   "decision=\"would_refuse\"} %" APR_UINT64_T_FMT "\n",
                   region->region, region->new_keys_counters.admitted,
                   region->region, region->new_keys_counters.refused,
                   region->region, region->new_keys_counters.would_refuse);
    }
}

/* ---- The store ---- */

static void print_outcome(request_rec *r, const rlr_status_t *status,
                          const char *name, const char *label,
                          rlr_stats_outcome_t outcome)
{
    for (int i = 0; i < status->regions->nelts; i++) {
        const rlr_status_region_t *region = &APR_ARRAY_IDX(status->regions, i,
                                                           rlr_status_region_t);

        ap_rprintf(r,
                   "%s{region=\"%s\",host=\"%s\",%s=\"%s\"} "
                   "%" APR_UINT64_T_FMT "\n",
                   name, region->region, status->store->host, label,
                   rlr_stats_words[outcome],
                   atomic_load(&region->store->requests[outcome]));
    }
}

/* Each request has one decision, so that these add up; and one reason, if it
 * was decided without the store. */
static void print_store_requests(request_rec *r, const rlr_status_t *status)
{
    static const char requests[] = "ratelimit_store_requests_total";
    static const char alone[] = "ratelimit_store_alone_total";

    ap_rprintf(r,
               "# HELP %s Requests by how this host decided them, each once.\n"
               "# TYPE %s counter\n",
               requests, requests);
    for (rlr_stats_outcome_t k = 0; k < RLR_STATS_OUTCOMES; k++) {
        if (!rlr_stats_is_reason(k)) {
            print_outcome(r, status, requests, "decision", k);
        }
    }
    ap_rprintf(
        r,
        "# HELP %s Requests that this host decided without the store, by "
        "the reason.\n"
        "# TYPE %s counter\n",
        alone, alone);
    for (rlr_stats_outcome_t k = 0; k < RLR_STATS_OUTCOMES; k++) {
        if (rlr_stats_is_reason(k)) {
            print_outcome(r, status, alone, "reason", k);
        }
    }
}

static void print_round_trips(request_rec *r, const rlr_status_store_t *store)
{
    static const char name[] = "ratelimit_store_round_trip_seconds";
    uint64_t count = 0;

    ap_rprintf(r,
               "# HELP %s Calls to the store that were sent together, until "
               "the last reply.\n"
               "# TYPE %s histogram\n",
               name, name);
    for (int i = 0; i < RLR_STATS_BOUNDS; i++) {
        count += atomic_load(&store->stats->rounds[i]);
        ap_rprintf(r,
                   "%s_bucket{host=\"%s\",le=\"%.3f\"} %" APR_UINT64_T_FMT "\n",
                   name, store->host, rlr_stats_bounds_ms[i] / 1000.0, count);
    }
    count += atomic_load(&store->stats->rounds[RLR_STATS_BOUNDS]);
    ap_rprintf(r,
               "%s_bucket{host=\"%s\",le=\"+Inf\"} %" APR_UINT64_T_FMT "\n"
               "%s_sum{host=\"%s\"} %.6f\n"
               "%s_count{host=\"%s\"} %" APR_UINT64_T_FMT "\n",
               name, store->host, count, name, store->host,
               (double)atomic_load(&store->stats->round_us) / 1e6, name,
               store->host, count);
}

static void print_store_number(request_rec *r, const rlr_status_store_t *store,
                               const char *name, const char *type,
                               const char *help, uint64_t value)
{
    ap_rprintf(r,
               "# HELP ratelimit_store_%s %s\n"
               "# TYPE ratelimit_store_%s %s\n"
               "ratelimit_store_%s{host=\"%s\"} %" APR_UINT64_T_FMT "\n",
               name, help, name, type, name, store->host, value);
}

static void print_store(request_rec *r, const rlr_status_store_t *store)
{
    print_round_trips(r, store);
    print_store_number(r, store, "recent_round_trip_microseconds", "gauge",
                       "Average duration of recent round trips.",
                       rlr_stats_recent_us(store->stats));
    print_store_number(r, store, "advised_timeout_milliseconds", "gauge",
                       "A RateLimitStoreTimeout that the round trips need; 0: "
                       "this one is twice as long.",
                       store->advised_ms);
    print_store_number(r, store, "errors_total", "counter",
                       "Round trips, and attempts to connect, with an error.",
                       atomic_load(&store->stats->errors));
    print_store_number(r, store, "leases", "gauge",
                       "Keys of which this host has a lease.",
                       store->leases.keys);
    print_store_number(r, store, "leased_requests", "gauge",
                       "Requests that these leases admit.",
                       store->leases.unused);
    print_store_number(r, store, "table_slots", "gauge",
                       "Slots of the shared table.", store->table_slots);
    print_store_number(r, store, "table_keys", "gauge",
                       "Keys in these slots: each one that this host asks the "
                       "store for has one.",
                       store->table_keys);
    print_store_number(r, store, "connected_partitions", "gauge",
                       "Partitions, of 16, that this host is connected to.",
                       store->summary.connected);
    print_store_number(r, store, "starting_seconds", "gauge",
                       "How long the limit of the longest interval admits "
                       "nothing because the hosts have just started.",
                       (store->starting_ms + 999) / 1000);
    print_store_number(r, store, "missing_hosts", "gauge",
                       "Hosts that are not connected to the store.",
                       store->summary.group.missing);
    print_store_number(r, store, "reserved_shares", "gauge",
                       "Shares that the store reserves for hosts.",
                       store->summary.group.reserved);
}

void rlr_print_metrics(request_rec *r, const rlr_status_t *status)
{
    print_metric(r, status,
                 "# HELP ratelimit_requests_total Requests by the rule that "
                 "decided.\n"
                 "# TYPE ratelimit_requests_total counter\n",
                 print_requests);
    print_metric(r, status,
                 "# HELP ratelimit_overflow_total Decisions by a shared "
                 "counter, for keys without a slot.\n"
                 "# TYPE ratelimit_overflow_total counter\n",
                 print_overflow);
    print_metric(r, status,
                 "# HELP ratelimit_live_keys Keys with a request that still "
                 "counts.\n"
                 "# TYPE ratelimit_live_keys gauge\n",
                 print_keys);
    print_metric(r, status,
                 "# HELP ratelimit_limit_requests Requests that a key may make "
                 "in the interval.\n"
                 "# TYPE ratelimit_limit_requests gauge\n",
                 print_quota);
    print_new_key_metrics(r, status);
    ap_rprintf(r,
               "# HELP ratelimit_table_slots Slots of the shared table, or of "
               "leases.\n"
               "# TYPE ratelimit_table_slots gauge\n"
               "ratelimit_table_slots %u\n"
               "# HELP ratelimit_table_live_keys Slots with a live key.\n"
               "# TYPE ratelimit_table_live_keys gauge\n"
               "ratelimit_table_live_keys %u\n",
               status->slots, status->live_keys);
    if (status->store != NULL) {
        print_store_requests(r, status);
        print_store(r, status->store);
    }
}
