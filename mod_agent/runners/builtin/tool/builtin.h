/* SPDX-License-Identifier: Apache-2.0 */
/* The table of built-in tools. */
#ifndef AGENT_RUNNER_BUILTIN_H
#define AGENT_RUNNER_BUILTIN_H

#include "job.h"

typedef struct runner_builtin_t {
    const char *name;
    const char *description;
    /* JSON schema of the arguments. */
    const char *schema;
    /* Calls runner_job_finish() before it returns. */
    void (*run)(runner_job_t *job);
} runner_builtin_t;

/* Sets description, schema and builtin of a tool whose name is set; false when
 * there is no built-in tool of that name. */
bool runner_builtin_read(runner_tool_t *tool, apr_pool_t *pool);

#endif
