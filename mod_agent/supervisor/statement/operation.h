/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a connection, and which of them is next. */
#ifndef AGENT_SUPERVISOR_OPERATION_H
#define AGENT_SUPERVISOR_OPERATION_H

#include <apr_tables.h>

#include "../../db/query.h"
#include "failure.h"

typedef struct agent_database_t agent_database_t;

typedef struct agent_operation_t {
    const char *name; /* for the log */
    /* When it is due; AGENT_CLOCK_NEVER: not now. part: as given to
     * agent_database_add(), in all four. */
    apr_time_t (*due)(void *part);
    /* Sends its statement; temporary memory is database->scratch. */
    apr_status_t (*send)(void *part, agent_database_t *database,
                         agent_error_t **err);
    /* Takes the result, which lives until it returns. */
    void (*receive)(void *part, const agent_db_result_t *result);
    /* The statement was not sent, or failed: sets when it is due again. */
    void (*fail)(void *part, agent_failure_t failure);
    /* Sent before all others of its connection. */
    bool is_urgent;
} agent_operation_t;

/* An operation of a connection. */
typedef struct agent_operation_entry_t {
    const agent_operation_t *operation;
    /* The struct of its statement. */
    void *part;
    /* Number of the statement that it sent last; 0: none. */
    apr_uint64_t last_statement;
} agent_operation_entry_t;

/*
 * The next operation: an urgent one that is due, else the due one that was sent
 * longest ago, so that none waits for more than one statement of each other
 * operation although save_batch may be due all the time. Between equals the
 * order in which they were added decides. NULL: none is due. *next: when the
 * first of those that are not due is. entries: of agent_operation_entry_t.
 */
agent_operation_entry_t *agent_operation_choose(
    const apr_array_header_t *entries, apr_time_t now, apr_time_t *next);

#endif
