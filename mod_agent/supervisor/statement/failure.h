/* SPDX-License-Identifier: Apache-2.0 */
/* How statements fail. */
#ifndef AGENT_SUPERVISOR_FAILURE_H
#define AGENT_SUPERVISOR_FAILURE_H

#include "../../db/query.h"

/* How a statement failed. */
typedef enum agent_failure_t {
    /* The connection was lost, or the server crashed: it may or may not have
     * been executed. */
    AGENT_FAILURE_LOST,
    /* Not executed: it took longer than a statement may. */
    AGENT_FAILURE_TIMEOUT,
    /* Not executed: cancelled earlier, by an operator, or by a tool that ends
     * long statements. */
    AGENT_FAILURE_CANCEL,
    /* Not executed (deadlocks, restarts), or the connection was closed by us:
     * the next try may succeed. */
    AGENT_FAILURE_RETRY,
    /* Not executed: it waited for a lock for longer than a statement may. */
    AGENT_FAILURE_LOCK,
    /* Not executed: the database had too little memory, disk space or other
     * resources. */
    AGENT_FAILURE_SHORTAGE,
    /* The database refuses the parameters. */
    AGENT_FAILURE_DATA,
    /* The same: of a state, the length (MA011), the names of channels (MA012),
     * the parts of lists (MA013). */
    AGENT_FAILURE_STATE_LENGTH,
    AGENT_FAILURE_STATE_NAMES,
    AGENT_FAILURE_STATE_PARTS,
    /* The schema or the rights to it are missing; an operator must act. */
    AGENT_FAILURE_SETUP,
    /* Anything else: a defect. */
    AGENT_FAILURE_OTHER
} agent_failure_t;

/* Whether it happens in operation, and the next try may succeed: RETRY or
 * LOCK. */
bool agent_failure_is_expected(agent_failure_t failure);

/* Whether the same statement may succeed later: RETRY, LOCK, SHORTAGE or
 * SETUP. */
bool agent_failure_is_transient(agent_failure_t failure);

/* Whether a statement about one run that failed in this way several times is
 * given up: not if the reason may be outside of it. That are those which are
 * transient, a cancel, and a lost connection. */
bool agent_failure_counts(agent_failure_t failure);

/* Why a statement failed, as the end of a line of the log; a constant. */
const char *agent_failure_cause(agent_failure_t failure);

/* How the last statement of agent_db_send() failed, after the time `used` of
 * the one that it may take. */
agent_failure_t agent_failure_of(const agent_db_t *db, apr_interval_time_t used,
                                 apr_interval_time_t limit);

#endif
