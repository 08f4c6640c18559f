/* SPDX-License-Identifier: Apache-2.0 */
/* In place of http.c and log.c of the built-in runner: no request finds a
 * server, and no line is written. */
#ifndef AGENT_T_FUZZ_RUNNER_ALONE_H
#define AGENT_T_FUZZ_RUNNER_ALONE_H

#include <stdarg.h>

#include <apr_strings.h>

#include "runners/builtin/base/log.h"
#include "runners/builtin/io/http.h"

runner_transfer_t *runner_http_start(runner_http_t *http,
                                     const runner_request_t *request,
                                     const char **failure, apr_pool_t *pool)
{
    *failure = "there is no network";
    return NULL;
}

bool runner_http_is_waiting(const runner_transfer_t *transfer)
{
    return false;
}

void runner_http_cancel(runner_transfer_t *transfer)
{
}

const char *runner_http_content_type(runner_transfer_t *transfer)
{
    return NULL;
}

bool runner_http_is_ready(const runner_http_t *http)
{
    return false;
}

void runner_http_perform(runner_http_t *http)
{
}

/* Reads the texts. */
void runner_log_write(const char *run_id, const char *format, ...)
{
    char line[4096];
    va_list args;

    va_start(args, format);
    apr_vsnprintf(line, sizeof(line), format, args);
    va_end(args);
}

#endif
