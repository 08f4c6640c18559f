/* SPDX-License-Identifier: Apache-2.0 */
/* Durations and sizes; see quantity.h. ap_timeout_parameter_parse() of httpd
 * ignores text after the unit, has no days, and is not in agentctl. */
#include "quantity.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

/* More would not fit a number of bytes or microseconds. */
#define DIGITS_MAX 18

typedef struct unit_t {
    const char *name;
    apr_interval_time_t length;
} unit_t;

/* The largest first. */
static const unit_t units[] = {{"d", APR_INT64_C(86400) * APR_USEC_PER_SEC},
                               {"h", APR_INT64_C(3600) * APR_USEC_PER_SEC},
                               {"min", APR_INT64_C(60) * APR_USEC_PER_SEC},
                               {"s", APR_USEC_PER_SEC},
                               {"ms", 1000}};

#define UNITS (sizeof(units) / sizeof(units[0]))

/* Sets *number to that of the digits at the beginning of text. Returns the text
 * after them; NULL: there are none, or too many. */
static const char *read_number(apr_int64_t *number, const char *text)
{
    size_t digits = strspn(text, "0123456789");

    *number = apr_atoi64(text);
    return digits > 0 && digits <= DIGITS_MAX ? text + digits : NULL;
}

/* Returns false if the product is larger than *out can be. */
static bool multiply(apr_int64_t *out, apr_int64_t number, apr_int64_t unit)
{
    return !__builtin_mul_overflow(number, unit, out);
}

bool agent_quantity_read_duration(apr_interval_time_t *out, const char *text,
                                  const char *unit)
{
    apr_int64_t number;
    const char *end = read_number(&number, text);

    if (end == NULL || (*end == '\0' && unit == NULL)) {
        return false;
    }
    end = *end == '\0' ? unit : end;
    for (size_t i = 0; i < UNITS; i++) {
        if (strcmp(end, units[i].name) == 0) {
            return multiply(out, number, units[i].length);
        }
    }
    return false;
}

const char *agent_quantity_print_duration(apr_interval_time_t duration,
                                          apr_pool_t *pool)
{
    size_t i = 0;

    while (i < UNITS - 1 && duration % units[i].length != 0) {
        i++;
    }
    return duration == 0
        ? "0"
        : apr_psprintf(pool, "%" APR_INT64_T_FMT "%s",
                       duration / units[i].length, units[i].name);
}

/* The bytes of a unit: none, or K, M or G in either case; 0 for anything else.
 */
static apr_int64_t read_unit(const char *unit)
{
    static const char names[] = "kmg";
    const char *found;

    if (*unit == '\0') {
        return 1;
    }
    found = strchr(names, apr_tolower(*unit));
    return found != NULL && unit[1] == '\0'
        ? APR_INT64_C(1024) << 10 * (found - names)
        : 0;
}

bool agent_quantity_read_size(apr_int64_t *out, const char *text)
{
    apr_int64_t number;
    const char *end = read_number(&number, text);
    apr_int64_t unit = end != NULL ? read_unit(end) : 0;

    return unit > 0 && multiply(out, number, unit);
}
