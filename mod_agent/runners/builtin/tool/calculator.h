/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic for the built-in tool `calculator`. */
#ifndef AGENT_RUNNER_CALCULATOR_H
#define AGENT_RUNNER_CALCULATOR_H

#include <apr_errno.h>
#include <apr_pools.h>

/*
 * The value of an expression of decimal numbers, + - * / % ^ and parentheses;
 * ^ (whole exponents) binds tightest and to the right, then the sign, then
 * * / % (% of whole numbers), then + -.
 * *result is the number, or on APR_EGENERAL what is wrong; both in pool.
 */
apr_status_t runner_calculator_run(const char **result, const char *expression,
                                   apr_pool_t *pool);

#endif
