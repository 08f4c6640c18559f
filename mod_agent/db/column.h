/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parameter that is an array, in PostgreSQL's binary format: texts need no
 * quotes, and the server copies them. Statements with many rows get a column
 * for each of their attributes, and read them with unnest().
 */
#ifndef AGENT_DB_COLUMN_H
#define AGENT_DB_COLUMN_H

#include <stdbool.h>

#include "../core/buffer.h"
#include "query.h"

/* The type of the elements: its OID, which is the same in every database. */
typedef enum agent_db_type_t {
    AGENT_DB_BOOLEAN = 16,
    AGENT_DB_BIGINT = 20,
    AGENT_DB_INTEGER = 23,
    AGENT_DB_TEXT = 25,
    AGENT_DB_JSON = 114,
    AGENT_DB_UUID = 2950
} agent_db_type_t;

typedef struct agent_db_column_t {
    agent_buffer_t bytes;
    agent_db_type_t type;
    apr_uint32_t count;
    bool has_null;
} agent_db_column_t;

/* Makes an empty column, in pool. */
void agent_db_column_init(agent_db_column_t *column, agent_db_type_t type,
                          apr_pool_t *pool);

/* Append an element: SQL null; a text in UTF-8, or JSON text (TEXT, JSON); a
 * number (BIGINT, INTEGER); a UUID as 36 characters in lower case (UUID), which
 * must be one, or "" for SQL null. */
void agent_db_column_null(agent_db_column_t *column);
void agent_db_column_text(agent_db_column_t *column, const char *text,
                          apr_size_t length);
void agent_db_column_number(agent_db_column_t *column, apr_int64_t number);
void agent_db_column_boolean(agent_db_column_t *column, bool value);
void agent_db_column_uuid(agent_db_column_t *column, const char *text);

/* Completes the column, and returns the bytes of the parameter, borrowed from
 * it; their number is stored in *length. */
const char *agent_db_column_end(agent_db_column_t *column, int *length);

/* The parameters of a statement as libpq takes them: lengths and formats (0:
 * text, 1: binary) of all, NULL when all are text. */
typedef struct agent_db_params_t {
    const char *const *values;
    const int *lengths;
    const int *formats;
} agent_db_params_t;

/* Sends two statements, as agent_db_send() does one, as one transaction and in
 * one write. The first one must have no name, and its result is dropped:
 * agent_db_receive() returns the result of the second, or the error of
 * either. */
apr_status_t agent_db_send_both(agent_db_t *db, const agent_statement_t *first,
                                const char *const *first_params,
                                const agent_statement_t *second,
                                const agent_db_params_t *params,
                                agent_error_t **err, apr_pool_t *pool);

/* agent_db_send() with such parameters. */
apr_status_t agent_db_send_params(agent_db_t *db,
                                  const agent_statement_t *statement,
                                  const agent_db_params_t *params,
                                  agent_error_t **err, apr_pool_t *pool);

#endif
