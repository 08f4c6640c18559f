/* SPDX-License-Identifier: Apache-2.0 */
/* The times of the protocol between hosts and the store, in milliseconds;
 * PROOF.md has the proof that needs them. */
#ifndef RLR_PERIOD_H
#define RLR_PERIOD_H

#include <stdint.h>

#include "../counter/window.h"

/* A host sends heartbeats for this long after its last answered call. */
#define RLR_PERIOD_HEARTBEAT_MS 2000U
/* The store ignores a heartbeat that is older. */
#define RLR_PERIOD_CALL_MS 500U
/* The store reserves the share of a host without a heartbeat for so long. */
#define RLR_PERIOD_TIMEOUT_MS 3000U
/* The store gives the number of such a host to another one. */
#define RLR_PERIOD_REPLACE_MS 60000U
/* Two servers answer as the store for this long at most. */
#define RLR_PERIOD_TWO_STORES_MS 60000U

#define RLR_PERIOD_LEASE_MAX_MS 1000U

/* The clocks of two machines differ by less than this part of a duration. */
#define RLR_PERIOD_DRIFT_PART 512

static inline uint64_t rlr_period_drift(uint64_t ms)
{
    return (ms + RLR_PERIOD_DRIFT_PART - 1) / RLR_PERIOD_DRIFT_PART;
}

/* How long a host may use a lease. */
static inline uint32_t rlr_period_lease(uint32_t interval_sec)
{
    uint32_t ms = interval_sec * 1000 / RLR_WINDOW_MARKS;

    return ms < RLR_PERIOD_LEASE_MAX_MS ? ms : RLR_PERIOD_LEASE_MAX_MS;
}

/* How long a host may bring its number to a new epoch (B), for that
 * RateLimitStoreShareTime. */
static inline uint64_t rlr_period_bring(uint64_t share_ms)
{
    uint64_t bring_ms = RLR_PERIOD_REPLACE_MS - RLR_PERIOD_HEARTBEAT_MS;

    return share_ms > bring_ms ? share_ms : bring_ms;
}

/* After this long without a heartbeat a host has ended (B + K + A + G), by the
 * store's clock. */
static inline uint64_t rlr_period_end(uint64_t share_ms)
{
    uint64_t bring_ms = rlr_period_bring(share_ms);

    return bring_ms + rlr_period_drift(bring_ms) + RLR_PERIOD_HEARTBEAT_MS
        + RLR_PERIOD_CALL_MS + RLR_PERIOD_TWO_STORES_MS;
}

/* How long a host has sent heartbeats before its share is not reserved (R). */
static inline uint64_t rlr_period_settle(uint32_t interval_sec)
{
    return RLR_PERIOD_TIMEOUT_MS + RLR_PERIOD_CALL_MS
        + rlr_period_lease(interval_sec) + (uint64_t)interval_sec * 1000;
}

/* After this long without an answered call a host admits its share. */
static inline uint64_t rlr_period_cut_off(uint32_t interval_sec)
{
    uint64_t ms = RLR_PERIOD_HEARTBEAT_MS + RLR_PERIOD_CALL_MS
        + rlr_period_settle(interval_sec);

    return ms + rlr_period_drift(ms);
}

/* The interval in which a host admits its share while it is cut off: by its own
 * clock, at least as long as the rule's by any other. */
static inline uint32_t rlr_period_share_sec(uint32_t interval_sec)
{
    return interval_sec + 1 + interval_sec / 512;
}

/* For at most how long an admission counts at its host, however it was made, by
 * the host's clock. */
static inline uint64_t rlr_period_counted(uint32_t interval_sec)
{
    return rlr_period_share_sec(interval_sec) * 1000ULL
        + 2 * RLR_PERIOD_LEASE_MAX_MS;
}

/* Whether a host that is cut off can ever admit its share: from W until S after
 * the last heartbeat, counted in an interval that a window may have. */
static inline bool rlr_period_has_share(uint32_t interval_sec,
                                        uint64_t share_ms)
{
    return rlr_period_share_sec(interval_sec) <= RLR_LIMIT_INTERVAL_SEC_MAX
        && rlr_period_cut_off(interval_sec) + rlr_period_drift(share_ms)
        < share_ms;
}

#endif
