/* SPDX-License-Identifier: Apache-2.0 */
/* Durations in directives: a whole number and a unit. No httpd here. */
#ifndef RLR_DURATION_H
#define RLR_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Reads "500ms", "10s", "1m" (or httpd's "1mi", "1min"), "1h", "2d" or a
 * bare number, which is in seconds; units in either case. False if the text is
 * anything else, or too large. These are the units of httpd's
 * ap_timeout_parameter_parse(), and the minutes and days that it lacks.
 */
bool rlr_duration_parse(uint64_t *ms, const char *text);

#endif
