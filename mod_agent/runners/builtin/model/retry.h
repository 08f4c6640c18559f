/* SPDX-License-Identifier: Apache-2.0 */
/* When to ask a model again (RFC 9110, 10.2.3). Nothing here reads a clock. */
#ifndef AGENT_RUNNER_RETRY_H
#define AGENT_RUNNER_RETRY_H

#include <stdbool.h>

#include <apr_time.h>

/* Calls in all, the first one included. */
#define RUNNER_RETRY_ATTEMPTS 4
/* A model that asks for a longer wait fails the run. */
#define RUNNER_RETRY_LONGEST apr_time_from_sec(60)

/* Whether a reply with this status may be better next time. */
bool runner_retry_is_worth(int status);

/*
 * The wait that a Retry-After field asks for: seconds (also "1.5") or an HTTP
 * date, seen at the time now. 0 for a date that has passed; -1 when value is
 * NULL or neither.
 */
apr_interval_time_t runner_retry_after(const char *value, apr_time_t now);

/*
 * How long to wait after the attempt of that number (from 1): what the server
 * asked for (asked, -1 = nothing), else 0.5 s doubled with each attempt up to
 * 8 s, less up to a quarter by random (any number).
 */
apr_interval_time_t runner_retry_delay(int attempt, apr_interval_time_t asked,
                                       unsigned random);

#endif
