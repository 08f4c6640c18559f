/* SPDX-License-Identifier: Apache-2.0 */
/* Durations and sizes: numbers with a unit, as directives and options of
 * agentctl have them. */
#ifndef AGENT_CORE_QUANTITY_H
#define AGENT_CORE_QUANTITY_H

#include <stdbool.h>

#include <apr_pools.h>
#include <apr_time.h>

/* Reads a duration: a whole number with ms, s, min (minutes), h or d. unit:
 * that of a number alone; NULL: every number needs one. Returns false if text
 * is not a duration, or longer than *out can be. */
bool agent_quantity_read_duration(apr_interval_time_t *out, const char *text,
                                  const char *unit);

/* Returns a duration >= 0 in the largest unit of which it is a whole number, in
 * pool; less than a millisecond is cut. */
const char *agent_quantity_print_duration(apr_interval_time_t duration,
                                          apr_pool_t *pool);

/* Reads a number of bytes: a whole number, alone or with K, M or G, in either
 * case. Returns false if text is not one, or larger than *out can be. */
bool agent_quantity_read_size(apr_int64_t *out, const char *text);

#endif
