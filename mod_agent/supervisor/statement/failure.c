/* SPDX-License-Identifier: Apache-2.0 */
/* How statements fail, by SQLSTATE; see failure.h. */
#include "failure.h"

#include <string.h>

#include "../../db/notice.h"

bool agent_failure_is_expected(agent_failure_t failure)
{
    return failure == AGENT_FAILURE_RETRY || failure == AGENT_FAILURE_LOCK;
}

bool agent_failure_is_transient(agent_failure_t failure)
{
    return agent_failure_is_expected(failure)
        || failure == AGENT_FAILURE_SHORTAGE || failure == AGENT_FAILURE_SETUP;
}

bool agent_failure_counts(agent_failure_t failure)
{
    return !agent_failure_is_transient(failure)
        && failure != AGENT_FAILURE_CANCEL && failure != AGENT_FAILURE_LOST;
}

const char *agent_failure_cause(agent_failure_t failure)
{
    switch (failure) {
    case AGENT_FAILURE_TIMEOUT:
        return "it took too long";
    case AGENT_FAILURE_CANCEL:
        return "it was cancelled before its limit";
    case AGENT_FAILURE_LOST:
        return "the connection to the database was lost";
    case AGENT_FAILURE_SHORTAGE:
        return "the database had too little memory or disk space";
    case AGENT_FAILURE_RETRY:
    case AGENT_FAILURE_LOCK:
        return "a deadlock, a lock, a restart or a read-only database ended it";
    default:
        return "the database refused it";
    }
}

/* states: SQLSTATEs or classes, ended by NULL. */
static bool is_one_of(const char *state, const char *const *states)
{
    for (; *states != NULL; states++) {
        if (strncmp(state, *states, strlen(*states)) == 0) {
            return true;
        }
    }
    return false;
}

/* A hundredth is more than the clocks of two hosts differ by. */
static agent_failure_t find_timeout(apr_interval_time_t used,
                                    apr_interval_time_t limit)
{
    return used < limit - limit / 100 ? AGENT_FAILURE_CANCEL
                                      : AGENT_FAILURE_TIMEOUT;
}

agent_failure_t agent_failure_of(const agent_db_t *db, apr_interval_time_t used,
                                 apr_interval_time_t limit)
{
    static const char *const setup[] = {"3F000", "42883", "42P01", "42501",
                                        NULL};
    static const char *const data[] = {"21", "22", "23", "54",
                                       "MA", "P0", NULL};
    static const char *const retry[] = {"25", "40", "55", "57", NULL};
    static const char *const states[] = {"MA011", "MA012", "MA013"};
    static const char *const timeout[] = {"57014", "25P04", NULL};
    static const char *const shortage[] = {"53", "58", NULL};
    static const char *const lock[] = {"55P03", NULL};
    /* A pooler's, perhaps without FATAL; with an ERROR that of a trigger. */
    static const char *const connection[] = {"08", NULL};
    const char *state = agent_db_sqlstate(db);
    bool is_connection = is_one_of(state, connection);

    if (is_one_of(state, shortage)) {
        return AGENT_FAILURE_SHORTAGE;
    }
    if (state[0] == '\0' || agent_db_is_panic(db)
        || (is_connection && !agent_db_is_error(db))) {
        return AGENT_FAILURE_LOST;
    }
    for (int i = 0; i < AGENT_FAILURE_STATE_PARTS - AGENT_FAILURE_DATA; i++) {
        if (strcmp(state, states[i]) == 0) {
            return (agent_failure_t)(AGENT_FAILURE_STATE_LENGTH + i);
        }
    }
    if (is_one_of(state, setup)) {
        return AGENT_FAILURE_SETUP;
    }
    if (is_one_of(state, data)) {
        return AGENT_FAILURE_DATA;
    }
    if (is_one_of(state, timeout)) {
        return find_timeout(used, limit);
    }
    if (is_one_of(state, lock)) {
        return AGENT_FAILURE_LOCK;
    }
    return is_connection || is_one_of(state, retry) || agent_db_is_stale(db)
        ? AGENT_FAILURE_RETRY
        : AGENT_FAILURE_OTHER;
}
