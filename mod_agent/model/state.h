/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters for queries of a thread's state, and updates by clients: an update
 * is a call, which the thread's graph executes. ref: the thread, and the id of
 * the call as run_id. Errors: as in run.h. */
#ifndef AGENT_MODEL_STATE_H
#define AGENT_MODEL_STATE_H

#include <apr_time.h>

#include "../db/pool.h"
#include "ref.h"

/* The query string of a GET of a state or a history. All borrowed. */
typedef struct agent_state_query_t {
    /* Words of agent_state_fields, up to a NULL; NULL: all. */
    const char *const *select;
    bool subgraphs;
    /* Of a history: 0 or NULL without one. */
    int limit;
    const char *before;
} agent_state_query_t;

/* Returns the query as the body of the equivalent POST, in pool; NULL: it has
 * no members. */
const char *agent_state_print_query(const agent_state_query_t *query,
                                    apr_pool_t *pool);

/* A timeout as a parameter of a statement: in seconds. */
const char *agent_state_print_seconds(apr_interval_time_t timeout,
                                      apr_pool_t *pool);

/* A new thread with its state. All borrowed. */
typedef struct agent_state_creation_t {
    const agent_run_ref_t *ref;
    const char *user_id;
    const char *if_exists;
    apr_interval_time_t timeout;
    /* As of agent_thread_create(). */
    const char *ttl;
    const char *request;
} agent_state_creation_t;

/* Creates the call. timeout: how long the request waits for it. request: the
 * body as sent. *changed: as in run.h. Errors: THREAD_NOT_FOUND, THREAD_BUSY,
 * NO_GRAPH, GRAPH_NOT_FOUND, CHECKPOINT_NOT_FOUND. */
apr_status_t agent_state_update(const char **changed, agent_db_pool_t *db,
                                const agent_run_ref_t *ref, const char *user_id,
                                apr_interval_time_t timeout,
                                const char *request, agent_error_t **err,
                                apr_pool_t *pool);

/* Creates a thread with states. request: of POST /threads, with supersteps;
 * if_exists: as in thread.h. *changed NULL: the thread exists, *body is its
 * record. The call's response is the record of the thread. Errors:
 * THREAD_EXISTS, NO_GRAPH, GRAPH_NOT_FOUND. */
apr_status_t agent_state_create(const char **body, const char **changed,
                                agent_db_pool_t *db,
                                const agent_state_creation_t *creation,
                                agent_error_t **err, apr_pool_t *pool);

/* Polls the call: APR_EAGAIN while it is unfinished, else *body is the response
 * or the error is its result: UPDATE_REFUSED, CALL_FAILED, or THREAD_NOT_FOUND
 * after the deletion of the thread. */
apr_status_t agent_state_join(const char **body, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, agent_error_t **err,
                              apr_pool_t *pool);

/* Ends the call, which has timed out, and returns its result as
 * agent_state_join() does, but never APR_EAGAIN. No later result of it is
 * saved. Further errors: CALL_TIMEOUT when a runner had it, NO_RUNNER when none
 * did. */
apr_status_t agent_state_end(const char **body, agent_db_pool_t *db,
                             const agent_run_ref_t *ref, agent_error_t **err,
                             apr_pool_t *pool);

#endif
