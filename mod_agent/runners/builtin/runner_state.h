/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the process, shared by the loop and the commands. */
#ifndef AGENT_RUNNER_RUNNER_STATE_H
#define AGENT_RUNNER_RUNNER_STATE_H

#include <apr_hash.h>

#include "core/raw.h"
#include "runners/builtin/io/wire.h"
#include "runners/builtin/run/pending.h"
#include "runners/builtin/run/queue.h"
#include "runners/builtin/run/runs.h"
#include "runners/builtin/run/warm.h"

typedef struct runner_t {
    apr_pool_t *pool;
    /* Cleared after each line. */
    apr_pool_t *scratch;
    runner_wire_t wire;
    runner_http_t *http;
    /* name -> runner_graph_t; NULL before hello. */
    apr_hash_t *graphs;
    /* name -> runner_problem_t: built-in graphs that cannot be executed. */
    apr_hash_t *problems;
    /* The most runs at once. */
    int slots;
    /* The number of runs. */
    int used;
    runner_run_ring_t runs;
    /* Starts that wait for memory. */
    runner_queue_t queue;
    runner_pending_t pending;
    /* States of threads whose run has ended. */
    runner_warm_t *warm;
    /* The line that is executed was queued: it arrived before any drain. */
    bool was_queued;
    /* The weight of that line. */
    runner_weight_t weight;
    /* Runs that waited for memory may continue: the next iteration is due now.
     */
    bool has_room;
    bool is_draining;
    bool is_over;
    int exit_code;
} runner_t;

#endif
