/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, their state and their events. *body, *changed and errors: as in
 * run.h. */
#ifndef AGENT_MODEL_THREAD_H
#define AGENT_MODEL_THREAD_H

#include "../db/pool.h"
#include "page.h"
#include "ref.h"
#include "thread_cursor.h"

/* Creates the thread ref->thread_id. request: the body as sent. if_exists:
 * raise (error THREAD_EXISTS) or do_nothing: returns the existing one. ttl: of
 * a request without one, an interval of PostgreSQL; NULL: none. */
apr_status_t agent_thread_create(const char **body, agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *if_exists, const char *ttl,
                                 const char *request, agent_error_t **err,
                                 apr_pool_t *pool);

/* Returns the record of a thread, with its values; *cursor as in values.h.
 * has_ttl: with its ttl, if it has one. Error: THREAD_NOT_FOUND. */
apr_status_t agent_thread_get(const char **body, const char **cursor,
                              agent_db_pool_t *db, const agent_run_ref_t *ref,
                              bool has_ttl, agent_error_t **err,
                              apr_pool_t *pool);

/* Returns how many bytes the state of a thread takes. page->body NULL: as for
 * agent_thread_search(). Error: THREAD_NOT_FOUND. */
apr_status_t agent_thread_get_storage(agent_page_t *page, agent_db_pool_t *db,
                                      const agent_run_ref_t *ref,
                                      const char *max_bytes,
                                      agent_error_t **err, apr_pool_t *pool);

/* Lists threads: up to the limit of the request, or as many as fit into about
 * 16 MB, but at least one; counts those that a search would find: page->body is
 * the number. request: the body as sent, checked by agent_schema_threads().
 * With max_bytes, page->body may be NULL: the records are too large or too many
 * threads must be examined, so the work is left for a turn; see page.h. */
apr_status_t agent_thread_search(agent_page_t *page, agent_db_pool_t *db,
                                 const char *deployment_id, const char *request,
                                 const char *max_bytes, agent_error_t **err,
                                 apr_pool_t *pool);
apr_status_t agent_thread_count(agent_page_t *page, agent_db_pool_t *db,
                                const char *deployment_id, const char *request,
                                const char *max_bytes, agent_error_t **err,
                                apr_pool_t *pool);

/* Merges metadata into those of a thread, sets its ttl, and returns the record
 * as agent_thread_get() does. request: the body as sent. Further error: INVALID
 * if the merged metadata have too many members. */
apr_status_t agent_thread_update(const char **body, const char **cursor,
                                 agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 const char *request, agent_error_t **err,
                                 apr_pool_t *pool);

/* Deletes a piece of a thread with its runs, even one that executes. *more:
 * false in the first call; true on return: call again. Error: THREAD_NOT_FOUND,
 * at the first call. */
apr_status_t agent_thread_delete(const char **changed, bool *more,
                                 agent_db_pool_t *db,
                                 const agent_run_ref_t *ref,
                                 agent_error_t **err, apr_pool_t *pool);

/* Deletes the next piece of all but the last state. *cursor: NULL at first,
 * then what the last piece returned; NULL when nothing is left. */
apr_status_t agent_thread_prune(const char **cursor, agent_db_pool_t *db,
                                const agent_run_ref_t *ref, agent_error_t **err,
                                apr_pool_t *pool);

/* Returns the state at a checkpoint; checkpoint_id NULL: the one that request
 * names, a body of POST /threads/{thread_id}/state/checkpoint, or, where that
 * is NULL or names none, the newest. *cursor as in values.h; cursor NULL: the
 * text is complete, whatever its length. Errors: THREAD_NOT_FOUND,
 * CHECKPOINT_NOT_FOUND. */
apr_status_t agent_thread_get_state(const char **body, const char **cursor,
                                    agent_db_pool_t *db,
                                    const agent_run_ref_t *ref,
                                    const char *checkpoint_id,
                                    const char *request, agent_error_t **err,
                                    apr_pool_t *pool);

/* Returns the state as agent_thread_get_state(), with those of its subgraphs,
 * which request has asked for.
 * max_bytes: as in page.h. */
apr_status_t agent_thread_get_deep_state(
    agent_page_t *page, agent_db_pool_t *db, const agent_run_ref_t *ref,
    const char *checkpoint_id, const char *request, const char *max_bytes,
    agent_error_t **err, apr_pool_t *pool);

/* Returns a page of states, newest first. request: a body of POST
 * .../history. max_bytes: as in page.h. Error: THREAD_NOT_FOUND. */
apr_status_t agent_thread_get_history(agent_page_t *page, agent_db_pool_t *db,
                                      const agent_run_ref_t *ref,
                                      const char *request,
                                      const char *max_bytes,
                                      agent_error_t **err, apr_pool_t *pool);

/* Finds the cursor after the last event. *run_id: the run that executes there,
 * in pool, or NULL. Error: THREAD_NOT_FOUND. */
apr_status_t agent_thread_find_end(agent_thread_cursor_t *cursor,
                                   const char **run_id, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   agent_error_t **err, apr_pool_t *pool);

/* Columns of agent_thread_read_events(). */
enum {
    AGENT_THREAD_EVENT_ID,
    AGENT_THREAD_EVENT_RUN,
    AGENT_THREAD_EVENT_NAME,
    AGENT_THREAD_EVENT_DATA,
    AGENT_THREAD_EVENT_STATUS,
    AGENT_THREAD_EVENT_CHECKPOINT,
    AGENT_THREAD_EVENT_MORE,
    AGENT_THREAD_EVENT_CURSOR
};

/*
 * Polls a thread's stream. The first cursor comes from agent_thread_find_end()
 * or Last-Event-ID; a stream polls when it is woken by the thread's id, until
 * THREAD_NOT_FOUND. Rows in order. The cursor after a row is its ID, which is
 * sent as the event's id too. NAME set: an event to send. Each attempt of a run
 * begins with `metadata` {run_id, attempt}, in mode lifecycle the start of the
 * run. STATUS set: the run RUN is final (`run_done`). RUN NULL, STATUS
 * `deleted`: the run at the cursor was rolled back or deleted. CHECKPOINT: the
 * state after the run, for mode state_update, if it left one. Both NULL:
 * nothing to send, the cursor moves. MORE "t" (last row only): more events can
 * be read at once. CURSOR: of values in DATA that are sent in parts (values.h);
 * of several rows only one has it. names: NULL-terminated names of the events
 * to return ({"metadata"} for lifecycle, {} for state_update alone), NULL for
 * all (run_modes). limit, gaps and the bound of 64 KB: as
 * agent_run_read_events().
 */
apr_status_t agent_thread_read_events(agent_db_result_t **events,
                                      agent_db_pool_t *db,
                                      const agent_run_ref_t *ref,
                                      const agent_thread_cursor_t *after,
                                      int limit, const char *const *names,
                                      agent_error_t **err, apr_pool_t *pool);

#endif
