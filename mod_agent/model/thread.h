/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their state: one SQL function each.
 *
 * *body receives the response as PostgreSQL built it, in pool. Ids are lower
 * case UUIDs. Errors are those of the SQL function and of agent_db_pool_call().
 */
#ifndef AGENT_MODEL_THREAD_H
#define AGENT_MODEL_THREAD_H

#include <stdbool.h>

#include "../db/pool.h"
#include "ref.h"

/* request: the body as sent. if_exists: raise or do_nothing. */
apr_status_t agent_thread_create(const char **body, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *if_exists, const char *request,
                                 agent_error_t **err, apr_pool_t *pool);

apr_status_t agent_thread_get(const char **body, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, agent_error_t **err,
                              apr_pool_t *pool);

/* *changed: as in run.h. */
apr_status_t agent_thread_delete(const char **changed, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 agent_error_t **err, apr_pool_t *pool);

/* checkpoint_id NULL: the newest state. */
apr_status_t agent_thread_state(const char **body, agent_db_pool_t *db,
                                const agent_run_ref_t *ref,
                                const char *checkpoint_id, agent_error_t **err,
                                apr_pool_t *pool);

/*
 * A place in the events of all runs of a thread: number of the run within the
 * thread, number of the event within the run. Its text is "<run>-<seq>", the id
 * of the event before it. {n, -1}: all runs before n are over; {0, -1}: the
 * oldest event that is still there.
 */
typedef struct agent_thread_cursor_t {
    apr_int64_t run;
    apr_int64_t seq;
} agent_thread_cursor_t;

/* Reads an event's id, or "-" for the oldest event; false when it is neither.
 */
bool agent_thread_cursor_read(agent_thread_cursor_t *cursor, const char *text);

/*
 * The place behind everything that there is: where a stream begins that shows
 * only what is new. *run_id: the run in whose midst that is, else NULL.
 */
apr_status_t agent_thread_end(agent_thread_cursor_t *cursor,
                              const char **run_id, agent_db_pool_t *db,
                              const agent_run_ref_t *ref, agent_error_t **err,
                              apr_pool_t *pool);

/* Columns of agent_thread_events(). */
enum {
    AGENT_THREAD_EVENT_ID,
    AGENT_THREAD_EVENT_RUN,
    AGENT_THREAD_EVENT_NAME,
    AGENT_THREAD_EVENT_DATA,
    AGENT_THREAD_EVENT_STATUS,
    AGENT_THREAD_EVENT_CHECKPOINT,
    AGENT_THREAD_EVENT_MORE
};

/*
 * All that a stream of a thread needs at one look, in one statement. How to use
 * it: register for the thread's id; agent_thread_end() or the client's
 * Last-Event-ID gives the first cursor; then look, wait, look again, until the
 * thread is gone (THREAD_NOT_FOUND).
 *
 * Rows in order; after each row the cursor is agent_thread_cursor_read() of its
 * ID, which is also what is sent as its id.
 *   NAME set: send NAME, DATA. Every attempt of a run begins with
 *     `metadata` {run_id, attempt}: this is the start of mode lifecycle.
 *   STATUS set: the run is final, say so (`run_done`). RUN is NULL and STATUS
 *     is `deleted` when the run in which the cursor was has been rolled back or
 *     deleted. CHECKPOINT, when set, is the state it has left, for mode
 *     state_update: agent_thread_state() of it.
 *   Both NULL: nothing to send, but the cursor has moved.
 *   MORE "t" (last row only): there is more, ask again at once.
 * names: NULL-terminated names of the events wanted ({"metadata"} for
 * lifecycle, {} for state_update alone), NULL for all (run_modes); the others
 * cost no memory. limit, gaps and the bound of 64 KB: as agent_run_events().
 */
apr_status_t agent_thread_events(agent_db_result_t **events,
                                 agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const agent_thread_cursor_t *after, int limit,
                                 const char *const *names, agent_error_t **err,
                                 apr_pool_t *pool);

#endif
