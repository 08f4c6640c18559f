/* SPDX-License-Identifier: Apache-2.0 */
/* A page of records, or one large record. */
#ifndef AGENT_MODEL_PAGE_H
#define AGENT_MODEL_PAGE_H

#include "../db/pool.h"

/* The usual value of a parameter max_bytes: composing that much JSON takes a
 * few milliseconds. */
#define AGENT_PAGE_LIMIT "262144"

/* Borrowed from a result, or in pool. */
typedef struct agent_page_t {
    /* JSON text; NULL: the records have more than max_bytes, or too many must
     * be examined, and the rest was not read. With max_bytes NULL: the keys of
     * records of about 16 MB, as a JSON array. */
    const char *body;
    /* The offset of the next page; NULL after the last one. */
    const char *next;
    /* Number of the records on all pages; NULL where that is not counted. */
    const char *total;
} agent_page_t;

/* For the functions of this folder that return a page: executes a statement
 * whose columns are code, body, next and total. */
apr_status_t agent_page_query(agent_page_t *page, agent_db_pool_t *db,
                              const agent_statement_t *statement,
                              const char *const *params, agent_error_t **err,
                              apr_pool_t *pool);

/* Which records agent_page_read() reads; borrowed. */
typedef struct agent_page_records_t {
    /* "runs", "assistants", "versions", "threads", "states", "items"; "run": a
     * single one. */
    const char *kind;
    const char *deployment_id;
    /* The thread of runs and states, the assistant of versions; else NULL. */
    const char *parent_id;
    /* NULL-terminated names of members; NULL: all. */
    const char *const *select;
    /* The body of a request for threads, assistants or states, which may have
     * the members instead; or NULL. */
    const char *request;
    /* The body of a page. */
    const char *keys;
} agent_page_records_t;

/*
 * Reads the next records, up to `bytes` and one record more, joined by commas,
 * with one before them unless they are the first. cursor: "1.0" for the first
 * part. *next: the cursor of the part after it, NULL for the last one. Records
 * that were deleted are missing. Large values (values.h) are in parts of their
 * own. Errors: RUN_NOT_FOUND, of a single run; CHECKPOINT_NOT_FOUND when values
 * were deleted after their first part.
 */
apr_status_t agent_page_read(const char **part, const char **next,
                             agent_db_pool_t *db,
                             const agent_page_records_t *records,
                             const char *cursor, apr_size_t bytes,
                             agent_error_t **err, apr_pool_t *pool);

#endif
