/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the process, shared by the loop and the commands. */
#ifndef AGENT_RUNNER_RUNNER_STATE_H
#define AGENT_RUNNER_RUNNER_STATE_H

#include <apr_hash.h>

#include "runners/builtin/run/pending.h"
#include "runners/builtin/run/queue.h"
#include "runners/builtin/run/runs.h"
#include "wire.h"

typedef struct runner_t {
    apr_pool_t *pool;
    /* Cleared after each line. */
    apr_pool_t *scratch;
    runner_wire_t wire;
    runner_http_t *http;
    /* name -> runner_graph_t; NULL before hello. */
    apr_hash_t *graphs;
    /* The most runs at once, and their number. */
    int slots;
    int used;
    runner_run_ring_t runs;
    /* Starts that wait for memory. */
    runner_queue_t queue;
    runner_pending_t pending;
    /* The line that is executed: it was queued, so it arrived before a drain;
     * its weight. */
    bool was_queued;
    runner_weight_t weight;
    /* Runs that waited for memory may continue: the next turn is due. */
    bool has_room;
    bool is_draining;
    bool is_over;
    int exit_code;
} runner_t;

#endif
