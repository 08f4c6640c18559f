/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of a host for operators, in shared memory, since its first start:
 * how requests were decided, by region, and its calls to the store.
 */
#ifndef RLR_STATS_H
#define RLR_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RLR_STATS_REGIONS      16U
#define RLR_STATS_REGION_BYTES 65U

/* How a request was decided. */
typedef enum rlr_stats_outcome_t {
    RLR_STATS_LEASED, /* admitted by a lease */
    RLR_STATS_CACHED, /* refused by the last reply of the store */
    RLR_STATS_ASKED,  /* decided by the store */
    /* Without the store, for a reason, and then by this host alone: */
    RLR_STATS_LATE, /* no reply within RateLimitStoreTimeout */
    RLR_STATS_BUSY, /* all slots for waiting threads were taken */
    RLR_STATS_AWAY, /* the store is away, or its reply could not be used */
    RLR_STATS_ALONE_ADMITTED,
    RLR_STATS_ALONE_REFUSED,
    RLR_STATS_OUTCOMES
} rlr_stats_outcome_t;

/* Whether the store or a lease has decided. */
static inline bool rlr_stats_is_decided(rlr_stats_outcome_t outcome)
{
    return outcome == RLR_STATS_LEASED || outcome == RLR_STATS_CACHED
        || outcome == RLR_STATS_ASKED;
}

/* Whether it is a reason to decide without the store; the request also counts
 * as decided by this host alone. */
static inline bool rlr_stats_is_reason(rlr_stats_outcome_t outcome)
{
    return outcome == RLR_STATS_LATE || outcome == RLR_STATS_BUSY
        || outcome == RLR_STATS_AWAY;
}

/* The word of each on the status page. */
extern const char *const rlr_stats_words[RLR_STATS_OUTCOMES];

typedef struct rlr_stats_region_t {
    char region[RLR_STATS_REGION_BYTES]; /* empty: not in use */
    _Atomic uint64_t requests[RLR_STATS_OUTCOMES];
} rlr_stats_region_t;

/* Upper bounds of the duration of a round, in milliseconds; longer ones are
 * counted after the last. */
#define RLR_STATS_BOUNDS 8
extern const uint32_t rlr_stats_bounds_ms[RLR_STATS_BOUNDS];

typedef struct rlr_stats_t {
    rlr_stats_region_t regions[RLR_STATS_REGIONS];
    /* Rounds: calls that are sent together, and their replies. */
    _Atomic uint64_t rounds[RLR_STATS_BOUNDS + 1];
    _Atomic uint64_t round_us;  /* the duration of all rounds together */
    _Atomic uint64_t recent_us; /* the average of recent round trips */
    /* Rounds, and attempts to connect, with an error. */
    _Atomic uint64_t errors;
    /* How many of RLR_STATS_LATE and RLR_STATS_BUSY have been logged. */
    _Atomic uint64_t logged;
} rlr_stats_t;

/* Returns the numbers of the region; those of the last one if there are too
 * many. The parent process calls it for all regions first. */
rlr_stats_region_t *rlr_stats_find(rlr_stats_t *stats, const char *region);

void rlr_stats_request(rlr_stats_region_t *region, rlr_stats_outcome_t outcome);
void rlr_stats_round(rlr_stats_t *stats, uint64_t us, bool has_error);
void rlr_stats_error(rlr_stats_t *stats); /* the store cannot be reached */

/* Returns the number of all rounds. */
uint64_t rlr_stats_rounds(const rlr_stats_t *stats);

/* Adds a round trip to the average of recent ones. */
void rlr_stats_trip(rlr_stats_t *stats, uint64_t us);
uint64_t rlr_stats_recent_us(const rlr_stats_t *stats);

/* Returns a timeout in milliseconds that leaves room for round trips that are
 * longer than the average; 0: this one is twice the average at least. */
uint32_t rlr_stats_advise(const rlr_stats_t *stats, uint32_t timeout_ms);

/* Returns how many requests of all regions had that outcome. */
uint64_t rlr_stats_sum(const rlr_stats_t *stats, rlr_stats_outcome_t outcome);

#endif
