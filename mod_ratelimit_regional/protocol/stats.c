/* SPDX-License-Identifier: Apache-2.0 */
/* Counts with atomic additions: a process may die at any instruction. */
#include "stats.h"

#include <stdio.h>
#include <string.h>

/* The last round trip has this part of the average. */
#define RECENT 16U

const char *const rlr_stats_words[RLR_STATS_OUTCOMES] = {
    "leased", "cached", "asked",          "late",
    "busy",   "away",   "alone_admitted", "alone_refused"};

const uint32_t rlr_stats_bounds_ms[RLR_STATS_BOUNDS] = {1,  2,  5,   10,
                                                        20, 50, 100, 500};

rlr_stats_region_t *rlr_stats_find(rlr_stats_t *stats, const char *region)
{
    rlr_stats_region_t *found = &stats->regions[0];

    while (found < &stats->regions[RLR_STATS_REGIONS - 1]
           && found->region[0] != '\0' && strcmp(found->region, region) != 0) {
        found++;
    }
    if (found->region[0] == '\0') {
        snprintf(found->region, sizeof(found->region), "%s", region);
    }
    return found;
}

void rlr_stats_request(rlr_stats_region_t *region, rlr_stats_outcome_t outcome)
{
    atomic_fetch_add_explicit(&region->requests[outcome], 1,
                              memory_order_relaxed);
}

void rlr_stats_round(rlr_stats_t *stats, uint64_t us, bool has_error)
{
    int bound = 0;

    while (bound < RLR_STATS_BOUNDS
           && us > (uint64_t)rlr_stats_bounds_ms[bound] * 1000) {
        bound++;
    }
    atomic_fetch_add(&stats->rounds[bound], 1);
    atomic_fetch_add(&stats->round_us, us);
    atomic_fetch_add(&stats->errors, has_error);
}

void rlr_stats_trip(rlr_stats_t *stats, uint64_t us)
{
    uint64_t recent_us = atomic_load(&stats->recent_us);

    /* Another process may set it at the same time: one is not counted. */
    atomic_store(&stats->recent_us,
                 recent_us == 0 ? us
                                : recent_us - recent_us / RECENT + us / RECENT);
}

uint64_t rlr_stats_recent_us(const rlr_stats_t *stats)
{
    return atomic_load(&stats->recent_us);
}

uint32_t rlr_stats_advise(const rlr_stats_t *stats, uint32_t timeout_ms)
{
    uint64_t recent_us = rlr_stats_recent_us(stats);

    /* Single ones take longer than the average, and a request waits for the
     * worker, too. */
    return 2 * recent_us > 1000ULL * timeout_ms
        ? (uint32_t)(3 * recent_us / 1000 + 1)
        : 0;
}

void rlr_stats_error(rlr_stats_t *stats)
{
    atomic_fetch_add(&stats->errors, 1);
}

uint64_t rlr_stats_rounds(const rlr_stats_t *stats)
{
    uint64_t sum = 0;

    for (int i = 0; i <= RLR_STATS_BOUNDS; i++) {
        sum += atomic_load(&stats->rounds[i]);
    }
    return sum;
}

uint64_t rlr_stats_sum(const rlr_stats_t *stats, rlr_stats_outcome_t outcome)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < RLR_STATS_REGIONS; i++) {
        sum += atomic_load(&stats->regions[i].requests[outcome]);
    }
    return sum;
}
