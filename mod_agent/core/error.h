/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: born once where they happen, carried as apr_status_t plus an
 * agent_error_t, ended once in http/problem.c (or in the daemon's log).
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
    /* For the client: complete sentence, no SQL, no path. Never NULL. */
    const char *detail;
    /* For the error log only: what the library said. NULL when nothing. */
    const char *cause;
} agent_error_t;

/*
 * Makes the error and returns the status to hand upwards: always APR_EGENERAL,
 * so that a caller can write `return agent_error_set(...)`.
 * detail NULL = the default text of errors.def; both texts are copied to pool.
 */
apr_status_t agent_error_set(agent_error_t **err, agent_error_id_t id,
                             const char *detail, const char *cause,
                             apr_pool_t *pool);

/* The same with a printf-style detail and no cause. */
apr_status_t agent_error_setf(agent_error_t **err, agent_error_id_t id,
                              apr_pool_t *pool, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* HTTP status of an error, 400..599. */
int agent_error_http(agent_error_id_t id);

/* The stable word for the wire, never NULL. */
const char *agent_error_code(agent_error_id_t id);

/* The error an SQL function's code names; AGENT_E_INTERNAL when unknown. */
agent_error_id_t agent_error_from_code(const char *code);

/* The error of an SQLSTATE; NULL or unknown is AGENT_E_INTERNAL. */
agent_error_id_t agent_error_from_sqlstate(const char *sqlstate);

#endif
