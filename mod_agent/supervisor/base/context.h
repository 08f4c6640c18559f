/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context that all parts of the supervisor share: configuration, memory,
 * the time of this iteration, the log. Each part keeps a pointer to it. One
 * thread, no locks.
 */
#ifndef AGENT_SUPERVISOR_CONTEXT_H
#define AGENT_SUPERVISOR_CONTEXT_H

#include "report.h"
#include "supervisor_config.h"
#include "types.h"

typedef enum agent_mode_t {
    AGENT_MODE_RUNNING,
    /* No claims; executing runs may finish. */
    AGENT_MODE_DRAINING,
    /* Runners are killed; the worker is deregistered if there is time. */
    AGENT_MODE_STOPPING,
    AGENT_MODE_DONE
} agent_mode_t;

struct agent_context_t {
    const agent_supervisor_config_t *config;
    /* config->timing with the defaults filled in. */
    agent_supervisor_timing_t timing;
    apr_pool_t *pool;
    /* CLOCK_MONOTONIC, read once an iteration of the loop. */
    apr_time_t now;
    agent_mode_t mode;
    agent_report_t report;
};

/* The longest statement on the bulk and on the output connection: by default
 * half of the lease. */
static inline apr_interval_time_t agent_context_longest_statement(
    const agent_context_t *context)
{
    return 2 * context->timing.statement;
}

#endif
