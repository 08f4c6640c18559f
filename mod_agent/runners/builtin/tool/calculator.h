/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic expressions, for the built-in tool `calculator`. */
#ifndef AGENT_RUNNER_CALCULATOR_H
#define AGENT_RUNNER_CALCULATOR_H

#include <apr_errno.h>
#include <apr_pools.h>

/*
 * Evaluates an expression of decimal numbers, + - * / % ^ and parentheses. The
 * power ^ binds tightest, is right-associative and takes whole exponents. A
 * sign binds looser; % takes whole numbers. *result, in pool, is the number, or
 * the error on APR_EGENERAL.
 */
apr_status_t runner_calculator_run(const char **result, const char *expression,
                                   apr_pool_t *pool);

#endif
