/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that do a part of what they find: each is sent again soon while it
 * finds more, else each 10 s. One more is a row of such a table (expire.c,
 * account_sweeps.c). */
#ifndef AGENT_SUPERVISOR_SWEEP_H
#define AGENT_SUPERVISOR_SWEEP_H

#include "notify.h"
#include "worker.h"

#define AGENT_SWEEP_INTERVAL apr_time_from_sec(10)
/* Between two that found something: they lock a thread or take half a second.
 */
#define AGENT_SWEEP_PAUSE apr_time_from_msec(100)

typedef struct agent_sweep_t agent_sweep_t;

typedef struct agent_sweep_kind_t {
    agent_operation_t operation;
    agent_statement_t statement;
    /* Its parameters, in pool; NULL: it has none. */
    const char *const *(*make_params)(const agent_sweep_t *sweep,
                                      apr_pool_t *pool);
    /* From one to the next when it finds nothing; 0: AGENT_SWEEP_INTERVAL. */
    apr_interval_time_t interval;
} agent_sweep_kind_t;

struct agent_sweep_t {
    const agent_sweep_kind_t *kind;
    const agent_worker_t *worker;
    agent_notify_t *notify;
    apr_time_t due_at;
    apr_time_t sent_at;
};

/* A kind without the text of its statement: a function that returns 0 when
 * nothing is left. */
#define AGENT_SWEEP(function)                                                  \
    AGENT_SWEEP_OTHER(function, agent_sweep_receive, agent_sweep_fail)

/* A sweep whose result, or failure, another function takes. */
#define AGENT_SWEEP_OTHER(function, receive, fail)                             \
    .operation = {function, agent_sweep_due, agent_sweep_send, receive, fail}, \
    .statement.name = "agent_" function

/* Adds a sweep of each kind to the connection; kinds live as long as it. */
void agent_sweep_add(agent_database_t *database, const agent_worker_t *worker,
                     agent_notify_t *notify, const agent_sweep_kind_t *kinds,
                     int count);

/* Functions of an agent_operation_t whose part is an agent_sweep_t. */
apr_time_t agent_sweep_due(void *part);
apr_status_t agent_sweep_send(void *part, agent_database_t *database,
                              agent_error_t **err);
void agent_sweep_receive(void *part, const agent_db_result_t *result);
/* Delays the next sweep by 10 min after a time-out: it would take as long. */
void agent_sweep_fail(void *part, agent_failure_t failure);
/* Sends the sweep again after its interval, whatever the failure. */
void agent_sweep_retry(void *part, agent_failure_t failure);
/* Makes the next sweep due soon. */
void agent_sweep_repeat(agent_sweep_t *sweep);

#endif
