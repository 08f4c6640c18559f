/* SPDX-License-Identifier: Apache-2.0 */
/* Counts with atomic additions: a process may die at any instruction. */
#include "stats.h"

#include <stdio.h>
#include <string.h>

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
