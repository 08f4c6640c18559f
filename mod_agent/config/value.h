/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of directives: numbers, sizes and durations. Each reader checks the
 * range and returns NULL, or the error message for httpd: the directive, what
 * was expected and what was given.
 */
#ifndef AGENT_CONFIG_VALUE_H
#define AGENT_CONFIG_VALUE_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

typedef struct agent_size_range_t {
    apr_int64_t low;
    apr_int64_t high;
    /* The same as an administrator writes them. */
    const char *low_text;
    const char *high_text;
    bool allows_zero;
} agent_size_range_t;

/* Limits in units; a multiple of step units when step is not 0. */
typedef struct agent_duration_range_t {
    apr_int64_t low;
    apr_int64_t high;
    /* Of a number without a unit: "ms", "s" or "d". */
    const char *unit;
    bool is_whole;
} agent_duration_range_t;

/* A whole number. */
const char *agent_value_number(apr_int64_t *out, cmd_parms *cmd,
                               const char *arg, apr_int64_t low,
                               apr_int64_t high);

/* Bytes: a number, alone or with K, M or G. */
const char *agent_value_size(apr_int64_t *out, cmd_parms *cmd, const char *arg,
                             const agent_size_range_t *range);

/* A duration: a number, alone or with ms, s, min, h or d. */
const char *agent_value_duration(apr_interval_time_t *out, cmd_parms *cmd,
                                 const char *arg,
                                 const agent_duration_range_t *range);

#endif
