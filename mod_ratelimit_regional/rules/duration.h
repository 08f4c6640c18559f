/* SPDX-License-Identifier: Apache-2.0 */
/* Durations in directives: a whole number and a unit. No httpd here. */
#ifndef RLR_DURATION_H
#define RLR_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Reads "500ms", "10s", "1min" (or "1m", "1mi"), "1h", "2d", or a bare number,
 * which is in seconds; units in either case. False if the text is anything
 * else, or too large. Like httpd's ap_timeout_parameter_parse(), with "m" and
 * days.
 */
bool rlr_duration_parse(uint64_t *ms, const char *text);

#endif
