/* SPDX-License-Identifier: Apache-2.0 */
/* When to retry a model call (RFC 9110, 10.2.3). Time and randomness are
 * arguments. */
#ifndef AGENT_RUNNER_RETRY_H
#define AGENT_RUNNER_RETRY_H

#include <stdbool.h>

#include <apr_time.h>

/* The most attempts, including the first. */
#define RUNNER_RETRY_ATTEMPTS 4
/* The longest Retry-After; with a longer one the call fails. */
#define RUNNER_RETRY_LONGEST apr_time_from_sec(60)

/* Whether a reply with this status is worth a retry. */
bool runner_retry_is_worth(int status);

/*
 * Reads a Retry-After field: seconds (also "1.5"), or an HTTP date relative to
 * now. Returns 0 for a past date, -1 when value is NULL or malformed.
 */
apr_interval_time_t runner_retry_after(const char *value, apr_time_t now);

/*
 * The delay after an attempt, numbered from 1: the server's retry_after unless
 * that is -1; else 0.5 s, doubled with each attempt up to 8 s, minus a random
 * part of at most a quarter. random may be any number.
 */
apr_interval_time_t runner_retry_delay(int attempt,
                                       apr_interval_time_t retry_after,
                                       unsigned random);

#endif
