/* SPDX-License-Identifier: Apache-2.0 */
/* The error of a run, which the client reads in the run and its stream. */
#ifndef AGENT_RUNNER_PROBLEM_H
#define AGENT_RUNNER_PROBLEM_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct runner_problem_t {
    /* The name of an exception class, as LangGraph servers send it. */
    const char *name;
    /* For a person: the error and what to check. Valid UTF-8. */
    const char *message;
} runner_problem_t;

/* A name that several files use. */
#define RUNNER_INVALID_INPUT "InvalidUpdateError"

/* Sets *problem, in pool, with a printf-style message. Always returns
 * APR_EGENERAL, for `return runner_problem_set(...)`. */
apr_status_t runner_problem_set(runner_problem_t **problem, apr_pool_t *pool,
                                const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
