/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs. Each function calls one SQL function; its errors are those of the SQL
 * function and of agent_db_pool_call().
 *
 * *body: the response as PostgreSQL built it, in pool. *changed: the ids of the
 * thread and the runs whose waiters are to be notified, separated by spaces;
 * NULL for none.
 */
#ifndef AGENT_MODEL_RUN_H
#define AGENT_MODEL_RUN_H

#include "../db/pool.h"
#include "page.h"
#include "ref.h"

/* Which runs of a thread, and which of their fields. */
typedef struct agent_run_filter_t {
    int limit;
    int offset;
    /* NULL: any. */
    const char *status;
    /* NULL-terminated names of fields; NULL: all. */
    const char *const *select;
    /* See page.h. */
    const char *max_bytes;
} agent_run_filter_t;

/* Finds the thread of the run ref->run_id: its id, in pool. ref->thread_id is
 * not read. Error: RUN_NOT_FOUND. */
apr_status_t agent_run_find_thread(const char **thread_id, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   agent_error_t **err, apr_pool_t *pool);

/* Finds the event that shows the values of a checkpoint of the run. *seq: its
 * number, -1 if there is none. Error: RUN_NOT_FOUND. */
apr_status_t agent_run_find_checkpoint_event(
    apr_int64_t *seq, agent_db_pool_t *db, const agent_run_ref_t *ref,
    const char *checkpoint_id, agent_error_t **err, apr_pool_t *pool);

/* Returns the record of a run as page->body. max_bytes: see page.h. Error:
 * RUN_NOT_FOUND. */
apr_status_t agent_run_get(agent_page_t *page, agent_db_pool_t *db,
                           const agent_run_ref_t *ref, const char *max_bytes,
                           agent_error_t **err, apr_pool_t *pool);

/*
 * Lists the runs of a thread, newest first: up to filter->limit, or as many as
 * fit into about 16 MB, but at least one. Error: THREAD_NOT_FOUND.
 */
apr_status_t agent_run_list(agent_page_t *page, agent_db_pool_t *db,
                            const agent_run_ref_t *ref,
                            const agent_run_filter_t *filter,
                            agent_error_t **err, apr_pool_t *pool);

/* Bytes of a cursor of agent_run_delete(), with the final NUL. */
#define AGENT_RUN_DELETE_CURSOR_SIZE 141

/*
 * Deletes a final run with its events and checkpoints. *cursor: NULL at the
 * first call. APR_EAGAIN: nothing is deleted yet, call again with the *cursor
 * that the call set, in pool. Errors: RUN_NOT_FOUND, RUN_ACTIVE.
 */
apr_status_t agent_run_delete(const char **cursor, const char **changed,
                              agent_db_pool_t *db, const agent_run_ref_t *ref,
                              agent_error_t **err, apr_pool_t *pool);

/* How a run is cancelled, and why. */
typedef struct agent_run_cancel_t {
    /* interrupt or rollback. */
    const char *action;
    /* Stored in the record of the run; NULL: a client that gave no reason. */
    const char *reason;
} agent_run_cancel_t;

/* Cancels an unfinished run; one that executes ends later. Errors:
 * RUN_NOT_FOUND, RUN_FINISHED. */
apr_status_t agent_run_cancel(const char **changed, agent_db_pool_t *db,
                              const agent_run_ref_t *ref,
                              const agent_run_cancel_t *cancel,
                              agent_error_t **err, apr_pool_t *pool);

/*
 * Cancels runs of the thread ref->thread_id in one transaction, in the order of
 * run_ids. *count: in, the number of ids; out, the number of ids processed, at
 * least 1, fewer if the requests of their runs are large. Error: RUN_NOT_FOUND
 * if no run of the list exists.
 */
apr_status_t agent_run_cancel_many(const char **changed, agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   const char *const *run_ids, int *count,
                                   const char *action, agent_error_t **err,
                                   apr_pool_t *pool);

/*
 * Cancels up to 100 unfinished runs with ids below *before, newest first, and
 * sets *before to the id of the last one, in pool. status: pending, running or
 * all. Error: RUN_NOT_FOUND when no run is left.
 */
apr_status_t agent_run_cancel_by_status(const char **changed,
                                        const char **before,
                                        agent_db_pool_t *db,
                                        const char *deployment_id,
                                        const char *status, const char *action,
                                        agent_error_t **err, apr_pool_t *pool);

/* Returns the final values of a run; APR_EAGAIN while it has not finished.
 * *cursor as in values.h. Error: RUN_NOT_FOUND. */
apr_status_t agent_run_join(const char **body, const char **cursor,
                            agent_db_pool_t *db, const agent_run_ref_t *ref,
                            agent_error_t **err, apr_pool_t *pool);

/* Columns of agent_run_read_events(). */
enum {
    AGENT_RUN_EVENT_SEQ,
    AGENT_RUN_EVENT_NAME,
    AGENT_RUN_EVENT_DATA,
    AGENT_RUN_EVENT_STATUS,
    AGENT_RUN_EVENT_MORE,
    AGENT_RUN_EVENT_CURSOR
};

/*
 * Polls a run's stream: reads its events after a number, and its end.
 *
 * Rows in order, each with its number SEQ. NAME and DATA: an event to send.
 * NAME and STATUS NULL: nothing to send, the cursor moves to SEQ. STATUS set:
 * the run is final and all events are sent; the last row. MORE "t" (last row
 * only): more events can be read at once. CURSOR: of values in DATA that are
 * sent in parts (values.h); of several rows only one has it. No rows: no
 * events yet.
 *
 * names: NULL-terminated names of the events to return, NULL for all; others
 * take no memory, and the cursor moves past them. limit: events read; a result
 * also ends near 64 KB of data, which bounds what a slow reader holds. Events
 * that the retention has dropped are replaced by `gap` ({run_id, after, last}),
 * the run's state as `values`, and its `error` or `feedback`, whatever names
 * contains. Error: RUN_NOT_FOUND.
 */
apr_status_t agent_run_read_events(agent_db_result_t **events,
                                   agent_db_pool_t *db,
                                   const agent_run_ref_t *ref,
                                   apr_int64_t after, int limit,
                                   const char *const *names,
                                   agent_error_t **err, apr_pool_t *pool);

#endif
