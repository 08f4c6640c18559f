/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines; see report.h. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "context.h"

/* Room for a runner's line of 8 KB and its prefix. */
#define MAX_TEXT 8600

void agent_report_write(const agent_context_t *context, agent_log_level_t level,
                        const char *id, apr_status_t rv, const char *format,
                        ...)
{
    char text[MAX_TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    context->config->log.write(context->config->log.baton, level, id, rv, text);
}

/* Index of "AGT0301" .. in the tables. */
static int index_of(const char *id)
{
    int number = (int)strtol(id + 3, NULL, 10) - AGENT_REPORT_FIRST;

    return number >= 0 && number < AGENT_REPORT_COUNT ? number : 0;
}

static void write_with_count(const agent_context_t *context,
                             agent_log_level_t level, const char *id,
                             apr_status_t rv, const char *text,
                             unsigned omitted)
{
    if (omitted > 0) {
        agent_report_write(context, level, id, rv,
                           "%s (and %u more of this kind since the last "
                           "report)",
                           text, omitted);
    }
    else {
        agent_report_write(context, level, id, rv, "%s", text);
    }
}

void agent_report_repeat(agent_context_t *context, agent_log_level_t level,
                         const char *id, apr_status_t rv, const char *format,
                         ...)
{
    unsigned omitted;
    char text[MAX_TEXT];
    va_list args;

    if (!agent_throttle_pass(&context->report.throttles[index_of(id)],
                             context->now, &omitted)) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    write_with_count(context, level, id, rv, text, omitted);
}

void agent_report_repeat_of(const agent_context_t *context,
                            agent_report_t *report, agent_log_level_t level,
                            const char *id, apr_status_t rv, const char *format,
                            ...)
{
    unsigned omitted;
    char text[MAX_TEXT];
    va_list args;

    if (!agent_throttle_pass(&report->throttles[index_of(id)], context->now,
                             &omitted)) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    write_with_count(context, level, id, rv, text, omitted);
}
