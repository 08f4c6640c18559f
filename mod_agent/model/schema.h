/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What request bodies must look like, field by field. Unknown fields are
 * ignored; null is the same as absent; everything else that does not fit is
 * INVALID with the JSON pointer of the field.
 */
#ifndef AGENT_MODEL_SCHEMA_H
#define AGENT_MODEL_SCHEMA_H

#include "../core/error.h"
#include "../core/raw.h"

/* Bounds of a metadata object, so that it can be searched by index. */
#define AGENT_METADATA_KEYS        64
#define AGENT_METADATA_KEY_BYTES   64
#define AGENT_METADATA_VALUE_BYTES 512

/*
 * The members of a body that its schema knows: borrowed from the body's text.
 * NULL stands for a body without members.
 */
typedef struct agent_fields_t agent_fields_t;

/* The member's value; NONE when it is absent or null. */
agent_raw_t agent_field_raw(const agent_fields_t *fields, const char *key);

/* The text of a string, in the pool of the check; fallback for anything else.
 */
const char *agent_field_string(const agent_fields_t *fields, const char *key,
                               const char *fallback);

/*
 * Each of these checks a body, whose text has passed agent_json_scan_request(),
 * and returns its fields in pool. Takes memory for fields, not for the values
 * in them.
 */

/* The body of POST /threads. */
apr_status_t agent_schema_thread(const agent_fields_t **fields,
                                 agent_raw_t body, agent_error_t **err,
                                 apr_pool_t *pool);

/* The body of POST /threads/{thread_id}/runs. */
apr_status_t agent_schema_run(const agent_fields_t **fields, agent_raw_t body,
                              agent_error_t **err, apr_pool_t *pool);

/* The body of POST /runs/cancel: a status, or a thread and its runs. */
apr_status_t agent_schema_cancel(const agent_fields_t **fields,
                                 agent_raw_t body, agent_error_t **err,
                                 apr_pool_t *pool);

/* Runs that one request may create, or cancel by id. */
#define AGENT_MANY_RUNS 1000

/* The body of POST /runs/batch: an array of run bodies, each with its fields.
 */
apr_status_t agent_schema_runs(const agent_fields_t *const **runs, int *count,
                               agent_raw_t body, agent_error_t **err,
                               apr_pool_t *pool);

/* The one of the NULL-terminated words that text is; NULL = none. */
const char *agent_schema_find_word(const char *text, const char *const *words);

/* "a, b or c", in pool. */
const char *agent_schema_print_words(const char *const *words,
                                     apr_pool_t *pool);

extern const char *const agent_run_statuses[];
extern const char *const agent_run_fields[];
extern const char *const agent_cancel_actions[];
extern const char *const agent_if_exists[];
extern const char *const agent_stream_modes[];
extern const char *const agent_thread_stream_modes[];

#endif
