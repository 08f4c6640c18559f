/* SPDX-License-Identifier: Apache-2.0 */
/* Retry-After and exponential backoff. */
#include "retry.h"

#include <stdlib.h>

#include <apr_lib.h>
#include <curl/curl.h>

#define FIRST_DELAY   apr_time_from_msec(500)
#define LONGEST_DELAY apr_time_from_sec(8)
/* A year: far from any overflow. */
#define SECONDS_MAX 31536000.0

bool runner_retry_is_worth(int status)
{
    return status == 429 || status == 500 || status == 502 || status == 503
        || status == 529;
}

static apr_interval_time_t read_seconds(const char *value)
{
    char *end;
    double seconds = strtod(value, &end);

    while (apr_isspace(*end)) {
        end++;
    }
    if (*end != '\0') {
        return -1;
    }
    seconds = seconds > SECONDS_MAX ? SECONDS_MAX : seconds;
    return (apr_interval_time_t)(seconds * APR_USEC_PER_SEC);
}

apr_interval_time_t runner_retry_after(const char *value, apr_time_t now)
{
    time_t date;

    if (value == NULL) {
        return -1;
    }
    while (apr_isspace(*value)) {
        value++;
    }
    if (apr_isdigit(*value)) {
        apr_interval_time_t wait = read_seconds(value);

        if (wait >= 0) {
            return wait;
        }
    }
    date = curl_getdate(value, NULL);
    if (date == -1) {
        return -1;
    }
    return apr_time_from_sec(date) > now ? apr_time_from_sec(date) - now : 0;
}

apr_interval_time_t runner_retry_delay(int attempt,
                                       apr_interval_time_t retry_after,
                                       unsigned random)
{
    apr_interval_time_t delay = FIRST_DELAY;

    if (retry_after >= 0) {
        return retry_after;
    }
    for (int i = 1; i < attempt && delay < LONGEST_DELAY; i++) {
        delay *= 2;
    }
    delay = delay > LONGEST_DELAY ? LONGEST_DELAY : delay;
    return delay - delay / 4 * (random % 1024) / 1024;
}
