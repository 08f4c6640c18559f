/* SPDX-License-Identifier: Apache-2.0 */
/* The statement that ends a run in error when releasing it has failed: sent for
 * runs of this worker and of dead ones. */
#ifndef AGENT_SUPERVISOR_FAIL_RUN_H
#define AGENT_SUPERVISOR_FAIL_RUN_H

#include "../../db/statement.h"
#include "failure.h"

/* The error of such a run. */
typedef struct agent_fail_run_error_t {
    const char *name;
    const char *message;
} agent_fail_run_error_t;

/* failure: that of the last statement that was to release it. A constant. */
const agent_fail_run_error_t *agent_fail_run_error(agent_failure_t failure);

/* Parameters: worker, deployment, run, epoch, error, message. */
extern const agent_statement_t agent_fail_run;

#endif
