/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: created where they occur, returned as apr_status_t with an
 * agent_error_t, and handled once in http/problem.c or in the supervisor's log.
 * errors.def lists them all.
 */
#ifndef AGENT_CORE_ERROR_H
#define AGENT_CORE_ERROR_H

#include <apr_errno.h>
#include <apr_pools.h>

#define AGENT_ERROR(id, http, code, detail) AGENT_E_##id,
typedef enum agent_error_id_t {
#include "errors.def"
    AGENT_E_COUNT
} agent_error_id_t;

typedef struct agent_error_t {
    agent_error_id_t id;
    /* For the client: a complete sentence without SQL or paths. Never NULL. */
    const char *detail;
    /* For the error log only: the message of a library, or NULL. */
    const char *cause;
    /* The HTTP status: that of errors.def, unless it was changed. */
    int http;
    /* Additional members of the body, as JSON text that begins with a comma; ""
     * if there are none. */
    const char *members;
    /* Seconds after which the client may repeat the request; 0: unknown. */
    int retry_sec;
} agent_error_t;

/*
 * Creates the error and returns APR_EGENERAL, for `return
 * agent_error_set(...)`. detail NULL = the default text of errors.def; both
 * texts are copied to pool.
 */
apr_status_t agent_error_set(agent_error_t **err, agent_error_id_t id,
                             const char *detail, const char *cause,
                             apr_pool_t *pool);

/* Creates an error as agent_error_set(), with a printf-style detail and no
 * cause. */
apr_status_t agent_error_setf(agent_error_t **err, agent_error_id_t id,
                              apr_pool_t *pool, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Returns the HTTP status of an error, 400..599. */
int agent_error_http(agent_error_id_t id);

/* Returns the error's code in the API; never NULL, constant. */
const char *agent_error_code(agent_error_id_t id);

/* Returns the error of an SQL function's code; AGENT_E_INTERNAL if unknown. */
agent_error_id_t agent_error_from_code(const char *code);

/* Returns the error of an SQLSTATE; AGENT_E_INTERNAL if NULL or unknown. */
agent_error_id_t agent_error_from_sqlstate(const char *sqlstate);

#endif
