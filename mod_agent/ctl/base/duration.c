/* SPDX-License-Identifier: Apache-2.0 */
/* Durations of options; see duration.h. */
#include "duration.h"

#include <stdbool.h>
#include <string.h>

#include "../../core/quantity.h"
#include "output.h"

/* Returns the value of a text that is known to be a duration. */
static apr_interval_time_t get(const char *text, const char *unit)
{
    apr_interval_time_t duration = 0;

    agent_quantity_read_duration(&duration, text, unit);
    return duration;
}

/* No option is that precise. */
static bool is_in_ms(const char *text)
{
    size_t length = strlen(text);

    return length > 2 && strcmp(text + length - 2, "ms") == 0;
}

int ctl_duration_read(apr_int64_t *out, const char *option, const char *text,
                      const ctl_duration_range_t *range)
{
    apr_interval_time_t unit = get("1", range->unit);
    apr_interval_time_t duration;

    if (!is_in_ms(text) && agent_quantity_read_duration(&duration, text, NULL)
        && duration >= get(range->least, NULL)
        && duration <= get(range->most, NULL) && duration % unit == 0) {
        *out = duration / unit;
        return CTL_DONE;
    }
    ctl_error("--%s: expected a duration%s from %s to %s, a number with s, "
              "min, h or d, got '%s'",
              option, strcmp(range->unit, "d") == 0 ? " of whole days" : "",
              range->least, range->most, text);
    return CTL_USAGE;
}
