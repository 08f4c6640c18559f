/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines of the supervisor. ../messages.md lists every id with its cause,
 * its outcome and the action to take.
 */
#ifndef AGENT_SUPERVISOR_REPORT_H
#define AGENT_SUPERVISOR_REPORT_H

#include "../../core/log.h"
#include "../../core/throttle.h"
#include "types.h"

/* The supervisor's ids are AGT0301 .. AGT0399. */
#define AGENT_REPORT_FIRST 301
#define AGENT_REPORT_COUNT 99

typedef struct agent_report_t {
    /* Indexed by id. */
    agent_throttle_t throttles[AGENT_REPORT_COUNT];
} agent_report_t;

/* Writes one line. rv: 0 when no status belongs to it. */
void agent_report_write(const agent_context_t *context, agent_log_level_t level,
                        const char *id, apr_status_t rv, const char *format,
                        ...) __attribute__((format(printf, 5, 6)));

/* Writes a line at most once a minute for each id, with the number of lines
 * that were omitted. */
void agent_report_repeat(agent_context_t *context, agent_log_level_t level,
                         const char *id, apr_status_t rv, const char *format,
                         ...) __attribute__((format(printf, 5, 6)));

/* The same for each report, which is of what the line names: lines of one pool
 * suppress none of another. */
void agent_report_repeat_of(const agent_context_t *context,
                            agent_report_t *report, agent_log_level_t level,
                            const char *id, apr_status_t rv, const char *format,
                            ...) __attribute__((format(printf, 6, 7)));

#endif
