/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines; see report.h. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "context.h"

/* Room for a runner's line of 8 KB and what stands before it. */
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

void agent_report_repeat(agent_context_t *context, agent_log_level_t level,
                         const char *id, apr_status_t rv, const char *format,
                         ...)
{
    agent_report_t *report = &context->report;
    int i = index_of(id);
    char text[MAX_TEXT];
    va_list args;

    if (report->last[i] != 0
        && context->now - report->last[i] < apr_time_from_sec(60)) {
        report->dropped[i]++;
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (report->dropped[i] > 0) {
        agent_report_write(context, level, id, rv,
                           "%s (and %u more of this kind since the last "
                           "report)",
                           text, report->dropped[i]);
    }
    else {
        agent_report_write(context, level, id, rv, "%s", text);
    }
    report->last[i] = context->now;
    report->dropped[i] = 0;
}
