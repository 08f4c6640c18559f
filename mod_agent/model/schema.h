/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What request bodies must look like, field by field. Unknown fields are
 * ignored; null is the same as absent; everything else that does not fit is
 * INVALID with the JSON pointer of the field.
 */
#ifndef AGENT_MODEL_SCHEMA_H
#define AGENT_MODEL_SCHEMA_H

#include "../core/json.h"

/* Bounds of a metadata object, so that it can be searched by index. */
#define AGENT_METADATA_KEYS        64
#define AGENT_METADATA_KEY_BYTES   64
#define AGENT_METADATA_VALUE_BYTES 512

/* The body of POST /threads. */
apr_status_t agent_schema_thread(json_object *body, agent_error_t **err,
                                 apr_pool_t *pool);

/* The body of POST /threads/{thread_id}/runs. */
apr_status_t agent_schema_run(json_object *body, agent_error_t **err,
                              apr_pool_t *pool);

/* Runs that one request may create, or cancel by id. */
#define AGENT_MANY_RUNS 1000

/* The body of POST /runs/batch: an array of run bodies. */
apr_status_t agent_schema_runs(json_object *body, agent_error_t **err,
                               apr_pool_t *pool);

/* The body of POST /runs/cancel: a status, or a thread and its runs. */
apr_status_t agent_schema_cancel(json_object *body, agent_error_t **err,
                                 apr_pool_t *pool);

/* True when text is one of the NULL-terminated words. */
bool agent_schema_is_word(const char *text, const char *const *words);

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
