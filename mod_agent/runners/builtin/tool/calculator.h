/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic expressions, for the built-in tool `calculator`. */
#ifndef AGENT_RUNNER_CALCULATOR_H
#define AGENT_RUNNER_CALCULATOR_H

#include <apr_errno.h>
#include <apr_pools.h>

/*
 * Evaluates an expression of decimal numbers, + - * / % ^ and parentheses. ^
 * takes whole exponents, binds tightest and is right-associative; then the
 * sign; then * / % (% of whole numbers); then + -. *result, in pool, is the
 * number, or the error on APR_EGENERAL.
 */
apr_status_t runner_calculator_run(const char **result, const char *expression,
                                   apr_pool_t *pool);

#endif
