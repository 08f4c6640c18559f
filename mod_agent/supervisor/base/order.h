/* SPDX-License-Identifier: Apache-2.0 */
/* The smaller and the larger one of two numbers or times. */
#ifndef AGENT_SUPERVISOR_ORDER_H
#define AGENT_SUPERVISOR_ORDER_H

#include <apr_time.h>

static inline int agent_smaller(int a, int b)
{
    return a < b ? a : b;
}

static inline int agent_larger(int a, int b)
{
    return a > b ? a : b;
}

static inline apr_time_t agent_earlier(apr_time_t a, apr_time_t b)
{
    return a < b ? a : b;
}

static inline apr_time_t agent_later(apr_time_t a, apr_time_t b)
{
    return a > b ? a : b;
}

#endif
