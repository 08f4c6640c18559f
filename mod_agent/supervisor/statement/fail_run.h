/* SPDX-License-Identifier: Apache-2.0 */
/* The statement that ends a run in error when releasing it has failed: sent for
 * runs of this worker and of dead ones. */
#ifndef AGENT_SUPERVISOR_FAIL_RUN_H
#define AGENT_SUPERVISOR_FAIL_RUN_H

#include "../../db/statement.h"

/* The error and the message of such a run. */
#define AGENT_FAIL_RUN_ERROR "ReleaseTimeoutError"
#define AGENT_FAIL_RUN_MESSAGE                                                 \
    "The run could not be given back to the queue in time."

/* Parameters: worker, deployment, run, epoch, error, message. */
extern const agent_statement_t agent_fail_run;

#endif
