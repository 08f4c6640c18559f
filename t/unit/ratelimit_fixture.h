/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a request and of a concurrent process, for tests at every
 * instruction of the request. */
#ifndef AGENT_T_UNIT_RATELIMIT_FIXTURE_H
#define AGENT_T_UNIT_RATELIMIT_FIXTURE_H

#include <unistd.h>

/* Forked children have memory of their own. */
#define SEGMENT_SHARING MAP_PRIVATE
#include "../../mod_ratelimit_regional/counter/layout.h"
#include "ratelimit_segment.h"

/* In a check: a false condition is the problem. */
#define DEMAND(condition)                                                      \
    do {                                                                       \
        if (!(condition)) {                                                    \
            return #condition;                                                 \
        }                                                                      \
    } while (0)

/* The state of a request and its interruption. */
typedef struct fixture_t {
    rlr_window_t window;
    rlr_limit_t limit;
    sim_time_t time;
    rlr_clock_t clock;
    rlr_window_decision_t decision; /* of the request */
    sim_log_t log;                  /* of admissions by the interruption */
    segment_t segment;
    uint32_t admitted; /* by the interruption */
} fixture_t;

typedef void (*part_t)(fixture_t *fixture);
typedef const char *(*verify_t)(fixture_t *fixture);

/* A holder of a lock cannot be interrupted by a thread that needs it. */
static inline bool fixture_is_locked(const fixture_t *fixture)
{
    uint32_t locks = RLR_SET_LOCKS + RLR_OVERFLOW_WINDOWS;
    bool locked = false;

    for (uint32_t i = 0; i < locks; i++) {
        locked = locked
            || fixture->segment.table.locks[i].mutex.__data.__lock != 0;
    }
    return locked;
}

static inline const char *fixture_drop_table(fixture_t *fixture)
{
    const char *problem = rlr_walk_validate(&fixture->segment.table,
                                            &fixture->segment.clock);

    munmap(fixture->segment.memory, fixture->segment.size);
    return problem;
}

#endif
