/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals of PostgreSQL; see interval.h. */
#include "interval.h"

#include <apr_strings.h>

#include "../base/duration.h"

/* Ten years. */
#define LONGEST "3650d"

int ctl_interval_read(const char **out, const char *option, const char *text,
                      const char *least, apr_pool_t *pool)
{
    const ctl_duration_range_t range = {least, LONGEST, "s"};
    apr_int64_t seconds;

    *out = NULL;
    if (text == NULL) {
        return CTL_DONE;
    }
    if (ctl_duration_read(&seconds, option, text, &range) != CTL_DONE) {
        return CTL_USAGE;
    }
    *out = apr_psprintf(pool, "%" APR_INT64_T_FMT " s", seconds);
    return CTL_DONE;
}
