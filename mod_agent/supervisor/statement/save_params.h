/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of agent.save_batch. */
#ifndef AGENT_SUPERVISOR_SAVE_PARAMS_H
#define AGENT_SUPERVISOR_SAVE_PARAMS_H

#include "../../db/column.h"
#include "../lease/batch.h"

#define AGENT_SAVE_PARAMS 37

/*
 * Makes the parameters from the lines of a batch, except discarded ones, in
 * pool: at most twice the size of the lines, and 100 bytes for each channel.
 * The number of a batch among those of a lease that have more than events is
 * the next one: batches of a run are sent one after the other, and one that is
 * sent again, maybe in parts, keeps its number until it is saved. One of events
 * alone has the number too, but is not counted. Each has the last saved event.
 */
void agent_save_params_make(agent_db_params_t *params, const char *worker_id,
                            const agent_lease_table_t *leases,
                            const agent_batch_t *batch, apr_pool_t *pool);

#endif
