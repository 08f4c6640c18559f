/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in tools: one function and one row each. */
#include "builtin.h"

#include <string.h>

#include <apr_strings.h>

#include "calculator.h"
#include "runners/builtin/base/raw.h"
#include "runners/builtin/base/value.h"

#define EXPRESSION_MAX 1000

static void run_clock(runner_job_t *job)
{
    apr_time_exp_t now;

    apr_time_exp_gmt(&now, apr_time_now());
    runner_job_finish(
        job, false,
        apr_psprintf(job->jobs->pool, "%04d-%02d-%02dT%02d:%02d:%02d+00:00",
                     now.tm_year + 1900, now.tm_mon + 1, now.tm_mday,
                     now.tm_hour, now.tm_min, now.tm_sec));
}

static void run_calculator(runner_job_t *job)
{
    const char *expression = runner_raw_string(job->args, "expression",
                                               job->jobs->pool);
    const char *result;

    if (expression == NULL) {
        runner_job_finish(job, true,
                          "The argument \"expression\" must be a string.");
        return;
    }
    if (strlen(expression) > EXPRESSION_MAX) {
        runner_job_finish(job, true,
                          "The expression is longer than 1000 characters.");
        return;
    }
    if (runner_calculator_run(&result, expression, job->jobs->pool)
        != APR_SUCCESS) {
        runner_job_finish(job, true,
                          apr_pstrcat(job->jobs->pool,
                                      "The expression cannot be computed: ",
                                      result, ".", NULL));
        return;
    }
    runner_job_finish(job, false, result);
}

static const runner_builtin_t builtins[] = {
    {"clock", "Tells the current date and time in UTC (ISO 8601).",
     "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}",
     run_clock},
    {"calculator",
     "Computes an arithmetic expression of decimal numbers, + - * / % ^ and "
     "parentheses.",
     "{\"type\":\"object\",\"properties\":{\"expression\":{\"type\":"
     "\"string\",\"description\":\"For example: 2 * (3 + 4)\"}},"
     "\"required\":[\"expression\"],\"additionalProperties\":false}",
     run_calculator},
};

bool runner_builtin_read(runner_tool_t *tool, apr_pool_t *pool)
{
    for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
        const runner_builtin_t *builtin = &builtins[i];

        if (strcmp(builtin->name, tool->name) == 0) {
            tool->builtin = builtin;
            tool->description = builtin->description;
            tool->schema = runner_value_parse(builtin->schema,
                                              strlen(builtin->schema), pool);
            return true;
        }
    }
    return false;
}
