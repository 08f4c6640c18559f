/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares and completes header values and bodies. */
#include "quota.h"

#include <string.h>

#include <apr_strings.h>

/* Digits of the largest uint32_t. */
#define DIGITS 10

/* ---- When the configuration is read ---- */

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static rlr_text_t make_text(const char *bytes)
{
    rlr_text_t text = {bytes, strlen(bytes)};

    return text;
}

static const char *format_refusal(const char *rule, rlr_limit_t limit,
                                  apr_pool_t *pool)
{
    return apr_psprintf(
        pool,
        "{\"type\":\"https://iana.org/assignments/http-problem-types"
        "#quota-exceeded\","
        "\"title\":\"Request cannot be satisfied as assigned quota has been "
        "exceeded\","
        "\"status\":429,"
        "\"detail\":\"Rate limit exceeded: at most %u request%s in %u "
        "second%s (%s). Try again in ",
        limit.count, plural(limit.count), limit.interval_sec,
        plural(limit.interval_sec), rule);
}

void rlr_quota_init(rlr_quota_t *quota, const char *rule, rlr_limit_t limit,
                    apr_pool_t *pool)
{
    quota->limit = limit;
    quota->policy = apr_psprintf(pool, "\"%s\";q=%u;w=%u", rule, limit.count,
                                 limit.interval_sec);
    quota->remaining = make_text(apr_psprintf(pool, "\"%s\";r=", rule));
    quota->refusal = make_text(format_refusal(rule, limit, pool));
    quota->refusal_end = make_text(
        apr_psprintf(pool, ".\",\"violated-policies\":[\"%s\"]}\n", rule));
}

/* ---- For each response ---- */

static char *add_text(char *out, rlr_text_t text)
{
    memcpy(out, text.bytes, text.length);
    return out + text.length;
}

static char *add_number(char *out, uint32_t number)
{
    char digits[DIGITS];
    int count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) {
        *out++ = digits[--count];
    }
    return out;
}

const char *rlr_quota_remaining(const rlr_quota_t *quota, uint32_t remaining,
                                uint32_t reset_sec, apr_pool_t *pool)
{
    static const rlr_text_t middle = {";t=", 3};
    char *text = apr_palloc(
        pool, quota->remaining.length + middle.length + 2 * DIGITS + 1);
    char *end = add_number(add_text(text, quota->remaining), remaining);

    end = add_number(add_text(end, middle), reset_sec);
    *end = '\0';
    return text;
}

rlr_text_t rlr_quota_problem(const rlr_quota_t *quota, uint32_t wait_sec,
                             apr_pool_t *pool)
{
    static const rlr_text_t one = {" second", 7};
    static const rlr_text_t many = {" seconds", 8};
    char *text = apr_palloc(pool,
                            quota->refusal.length + DIGITS + many.length
                                + quota->refusal_end.length);
    char *end = add_number(add_text(text, quota->refusal), wait_sec);
    rlr_text_t problem;

    end = add_text(end, wait_sec == 1 ? one : many);
    end = add_text(end, quota->refusal_end);
    problem.bytes = text;
    problem.length = (size_t)(end - text);
    return problem;
}

uint32_t rlr_quota_seconds(uint32_t ms)
{
    return (ms + 999) / 1000;
}
