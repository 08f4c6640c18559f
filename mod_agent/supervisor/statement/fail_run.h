/* SPDX-License-Identifier: Apache-2.0 */
/* The statement that ends a run in error when releasing it has failed: sent for
 * runs of this worker and of dead ones. */
#ifndef AGENT_SUPERVISOR_FAIL_RUN_H
#define AGENT_SUPERVISOR_FAIL_RUN_H

#include "../../db/statement.h"

/* Parameters: worker, account, run, epoch, error, reason. */
extern const agent_statement_t agent_fail_run;

#endif
