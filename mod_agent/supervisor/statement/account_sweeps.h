/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and measures the rows of accounts, ends runs that would store more
 * than their account may. Deletes closed accounts and old rows of the audit
 * log; revokes API keys that have expired and deletes old ones. */
#ifndef AGENT_SUPERVISOR_ACCOUNT_SWEEPS_H
#define AGENT_SUPERVISOR_ACCOUNT_SWEEPS_H

#include "notify.h"
#include "worker.h"

/* Adds the statements to the connection. */
void agent_account_sweeps_add(agent_database_t *database,
                              const agent_worker_t *worker,
                              agent_notify_t *notify);

#endif
