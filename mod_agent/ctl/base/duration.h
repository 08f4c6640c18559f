/* SPDX-License-Identifier: Apache-2.0 */
/* Durations as values of options: a number with s, min, h or d. */
#ifndef AGENT_CTL_DURATION_H
#define AGENT_CTL_DURATION_H

#include <apr.h>

#include "status.h"

typedef struct ctl_duration_range_t {
    /* Durations: "1s", "3650d". */
    const char *least;
    const char *most;
    /* The value is a whole number of these: "s" or "d". */
    const char *unit;
} ctl_duration_range_t;

/* Sets *out to the value of an option, in units of the range. Returns CTL_DONE;
 * CTL_USAGE, after printing why, if text is not a duration within the range. */
int ctl_duration_read(apr_int64_t *out, const char *option, const char *text,
                      const ctl_duration_range_t *range);

#endif
