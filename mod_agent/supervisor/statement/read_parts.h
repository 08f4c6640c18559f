/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies to requests of runs (../runner/run/runner_request.h): parts of the
 * state from which a run starts, records of the graph library, items of the
 * store. One part a statement, over the bulk connection: its other statements
 * have their turns between two parts.
 */
#ifndef AGENT_SUPERVISOR_READ_PARTS_H
#define AGENT_SUPERVISOR_READ_PARTS_H

#include "../runner/run/runs.h"
#include "start.h"
#include "worker.h"

/* Bytes of a part; a single element of a list, or part of a value, may be
 * longer. */
#define AGENT_READ_PARTS_BYTES 1000000

typedef struct agent_read_parts_t {
    const agent_worker_t *worker;
    const agent_runner_table_t *runners;
    agent_runs_t *runs;
    /* The run of the statement in flight. */
    agent_lease_key_t key;
    /* The deployment of the last request during which the bulk connection was
     * lost by itself, when it was sent, until that is made again, or 0, the
     * number of the control connection then, and why it failed. */
    char lost_deployment[AGENT_UUID_SIZE];
    apr_time_t lost_since;
    apr_uint64_t lost_control;
    const char *lost_why;
    /* When requests were answered lately; each costs 1. */
    agent_patience_saved_t answered;
} agent_read_parts_t;

extern const agent_operation_t agent_read_parts_operation;

/* Called when a connection is up again: refuses a request that crashed the
 * database each time (retry.h). */
void agent_read_parts_on_connected(agent_read_parts_t *parts);

#endif
