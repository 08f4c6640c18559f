/* SPDX-License-Identifier: Apache-2.0 */
/* Why a run fails: what its client reads in the run, its state and stream. */
#ifndef AGENT_RUNNER_PROBLEM_H
#define AGENT_RUNNER_PROBLEM_H

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct runner_problem_t {
    /* A class name as the public agent servers use them. */
    const char *name;
    /* For a person: what happened and what to check. Valid UTF-8. */
    const char *message;
} runner_problem_t;

/* Names that more than one file uses. */
#define RUNNER_INVALID_INPUT "InvalidUpdateError"

/*
 * Makes the problem in pool with a printf-style message. Always returns
 * APR_EGENERAL, so that a caller can write `return runner_problem_set(...)`.
 */
apr_status_t runner_problem_set(runner_problem_t **problem, apr_pool_t *pool,
                                const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
