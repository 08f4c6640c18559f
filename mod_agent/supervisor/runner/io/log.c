/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output and error of runners; see log.h. */
#include "log.h"

#include <string.h>

#include <apr_strings.h>

#include "../../../core/uuid.h"
#include "../../base/order.h"

/* Bytes of a line that are logged. */
#define MAX_LINE 8000
/* Lines of one runner within one interval. */
#define MAX_LINES 100
#define INTERVAL  apr_time_from_sec(10)

/* "run ID: ", as PROTOCOL.md recommends. */
static bool names_its_run(const char *line, apr_size_t length)
{
    return length > 42 && memcmp(line, "run ", 4) == 0
        && memcmp(line + 40, ": ", 2) == 0;
}

/* The run, if the runner has only one, else the number of its runs; nothing
 * when the line itself names its run. */
static void name_runs(const agent_runner_t *runner, const char *line,
                      apr_size_t length, char *out, size_t size)
{
    if (names_its_run(line, length)) {
        out[0] = '\0';
    }
    else if (runner->group.active == 1) {
        apr_snprintf(out, size, ", run %.36s",
                     APR_RING_FIRST(&runner->group.leases)->key.run_id);
    }
    else {
        apr_snprintf(out, size, ", %d runs", runner->group.active);
    }
}

static void report_dropped(const agent_context_t *context,
                           agent_runner_t *runner)
{
    agent_runner_log_t *log = &runner->log;

    if (log->dropped > 0) {
        agent_report_write(context, AGENT_LOG_WARNING, "AGT0348", 0,
                           "runner %d: %u more lines were not logged%s%s",
                           (int)runner->pid, log->dropped,
                           log->dropped_run[0] != '\0' ? ", some of run " : "",
                           log->dropped_run);
        log->dropped = 0;
        log->votes = 0;
    }
}

void agent_runner_log_tick(const agent_context_t *context,
                           agent_runner_t *runner)
{
    agent_runner_log_t *log = &runner->log;

    if (context->now - log->since >= INTERVAL) {
        report_dropped(context, runner);
        log->since = context->now;
        log->lines = 0;
    }
}

/* Notes whose line it was: the run of most of them is the one that is named
 * (the majority vote of Boyer and Moore). */
static void drop(agent_runner_t *runner, const char *line, apr_size_t length)
{
    agent_runner_log_t *log = &runner->log;
    const char *bytes = names_its_run(line, length) ? line + 4
        : runner->group.active == 1
        ? APR_RING_FIRST(&runner->group.leases)->key.run_id
        : "";
    char text[AGENT_UUID_SIZE];
    char run_id[AGENT_UUID_SIZE];

    log->dropped++;
    apr_snprintf(text, sizeof(text), "%.36s", bytes);
    if (!agent_uuid_parse(run_id, text)) {
        run_id[0] = '\0';
    }
    if (log->votes == 0) {
        apr_cpystrn(log->dropped_run, run_id, sizeof(log->dropped_run));
    }
    log->votes += strcmp(run_id, log->dropped_run) == 0 ? 1 : -1;
}

static bool is_allowed(const agent_context_t *context, agent_runner_t *runner,
                       const char *line, apr_size_t length)
{
    agent_runner_log_t *log = &runner->log;

    agent_runner_log_tick(context, runner);
    if (log->lines >= MAX_LINES) {
        drop(runner, line, length);
        return false;
    }
    log->lines++;
    return true;
}

static void write_line(const agent_context_t *context, agent_runner_t *runner)
{
    agent_buffer_t *text = &runner->log.text;
    apr_size_t length = agent_buffer_length(text);
    char *bytes = agent_buffer_text(text);
    char about[64];

    if (length > 0 && is_allowed(context, runner, bytes, length)) {
        for (apr_size_t i = 0; i < length; i++) {
            /* A line of the log must not contain line breaks or terminal
             * sequences. */
            if ((unsigned char)bytes[i] < ' ' || bytes[i] == 0x7f) {
                bytes[i] = ' ';
            }
        }
        name_runs(runner, bytes, length, about, sizeof(about));
        agent_report_write(context, AGENT_LOG_NOTICE, "AGT0347", 0,
                           "runner %d (pool %s%s): %.*s", (int)runner->pid,
                           runner->runner_pool->config->name, about,
                           (int)length, bytes);
    }
    agent_buffer_consume(text, length);
}

void agent_runner_log_take(const agent_context_t *context,
                           agent_runner_t *runner, const char *bytes,
                           apr_size_t length)
{
    agent_runner_log_t *log = &runner->log;

    while (length > 0) {
        const char *newline = memchr(bytes, '\n', length);
        apr_size_t part = newline != NULL ? (apr_size_t)(newline - bytes)
                                          : length;
        apr_size_t room = MAX_LINE - agent_buffer_length(&log->text);

        if (!log->is_skipping) {
            agent_buffer_append(&log->text, bytes, AGENT_MIN(part, room));
        }
        if (part >= room && !log->is_skipping) {
            write_line(context, runner);
            log->is_skipping = true;
        }
        if (newline != NULL) {
            write_line(context, runner);
            log->is_skipping = false;
            part++;
        }
        bytes += part;
        length -= part;
    }
}

void agent_runner_log_end(const agent_context_t *context,
                          agent_runner_t *runner)
{
    write_line(context, runner);
    report_dropped(context, runner);
}
