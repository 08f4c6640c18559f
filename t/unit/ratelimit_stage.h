/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a request and of a concurrent process, for tests at every
 * instruction of the request. */
#ifndef AGENT_T_UNIT_RATELIMIT_STAGE_H
#define AGENT_T_UNIT_RATELIMIT_STAGE_H

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
typedef struct stage_t {
    rlr_window_t window;
    rlr_limit_t limit;
    sim_time_t time;
    rlr_clock_t clock;
    rlr_window_decision_t decision; /* of the request */
    sim_log_t log;                  /* of admissions by the interruption */
    segment_t segment;
    uint32_t admitted; /* by the interruption */
} stage_t;

typedef void (*part_t)(stage_t *stage);
typedef const char *(*judge_t)(stage_t *stage);

/* A holder of a lock cannot be interrupted by a thread that needs it. */
static inline bool stage_is_locked(const stage_t *stage)
{
    uint32_t locks = RLR_SET_LOCKS + RLR_GROUPS;
    bool locked = false;

    for (uint32_t i = 0; i < locks; i++) {
        locked = locked
            || stage->segment.table.locks[i].mutex.__data.__lock != 0;
    }
    return locked;
}

static inline const char *stage_drop_table(stage_t *stage)
{
    const char *problem = rlr_walk_validate(&stage->segment.table,
                                            &stage->segment.clock);

    munmap(stage->segment.memory, stage->segment.size);
    return problem;
}

#endif
