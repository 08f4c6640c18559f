/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of directives. Each function returns NULL, or the error message for
 * httpd: the directive, the expected and the given value.
 */
#ifndef AGENT_CONFIG_VALUE_H
#define AGENT_CONFIG_VALUE_H

#include <stdbool.h>

#include <httpd.h>
#include <http_config.h>

#include "config.h"

/* The limits of a size, in bytes. */
typedef struct agent_size_range_t {
    apr_int64_t low;
    apr_int64_t high;
    /* Both limits for the error message, with K, M or G. */
    const char *low_text;
    const char *high_text;
    /* 0 is valid too. */
    bool allows_zero;
} agent_size_range_t;

/* The limits of a duration, in `unit`. */
typedef struct agent_duration_range_t {
    apr_int64_t low;
    apr_int64_t high;
    /* The unit of the limits, and of a number without one: "ms", "s", "min" or
     * "d". */
    const char *unit;
    /* Must be a multiple of the unit. */
    bool is_whole;
    /* Off is valid too: 0. */
    bool allows_off;
} agent_duration_range_t;

/* Returns the main server's configuration, for a directive that is not allowed
 * in sections or virtual hosts. NULL inside of one: *problem is the error
 * message. */
agent_server_config_t *agent_value_server(const char **problem, cmd_parms *cmd);

/* Reads account=ID. arg: NULL without one, for which *out is NULL. previous:
 * the argument before it, for the error message. */
const char *agent_value_account(const char **out, cmd_parms *cmd,
                                const char *arg, const char *previous);

/* Reads a whole number from low to high. */
const char *agent_value_number(apr_int64_t *out, cmd_parms *cmd,
                               const char *arg, apr_int64_t low,
                               apr_int64_t high);

/* Reads a number of bytes, alone or with K, M or G. */
const char *agent_value_size(apr_int64_t *out, cmd_parms *cmd, const char *arg,
                             const agent_size_range_t *range);

/* Reads a duration: a number, alone or with ms, s, min, h or d. */
const char *agent_value_duration(apr_interval_time_t *out, cmd_parms *cmd,
                                 const char *arg,
                                 const agent_duration_range_t *range);

/* Checks only that arg begins with http:// or https://, in either case. */
const char *agent_value_url(cmd_parms *cmd, const char *arg);

#endif
