/* SPDX-License-Identifier: Apache-2.0 */
/* save_graphs: stores what runners reported about graphs. */
#ifndef AGENT_SUPERVISOR_SAVE_GRAPHS_H
#define AGENT_SUPERVISOR_SAVE_GRAPHS_H

#include "../runner/pool/runner.h"
#include "worker.h"

typedef struct agent_save_graphs_t {
    const agent_worker_t *worker;
    agent_runner_table_t *runners;
    /* The pool of the reports in flight; pools take turns. */
    agent_runner_pool_t *sent;
    /* When the next statement may be sent: at most one a second, since a
     * runner may report something else at each start, unless the last one did
     * not have all reports. */
    apr_time_t due_at;
    bool is_partial;
} agent_save_graphs_t;

extern const agent_operation_t agent_save_graphs_operation;

#endif
