/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one run of a built-in graph. */
#ifndef AGENT_RUNNER_STATE_H
#define AGENT_RUNNER_STATE_H

#include <apr_ring.h>

#include "core/uuid.h"
#include "node.h"
#include "output.h"
#include "pending.h"
#include "runners/builtin/model/call.h"
#include "runners/builtin/tool/jobs.h"

typedef enum runner_phase_t {
    /* Created; the state is not loaded yet. */
    RUNNER_PHASE_BEGIN,
    /* Between two nodes. */
    RUNNER_PHASE_NEXT,
    RUNNER_PHASE_AGENT,
    RUNNER_PHASE_TOOLS,
    RUNNER_PHASE_OVER
} runner_phase_t;

/* The step of a thread without checkpoints. */
#define RUNNER_STEP_NONE (-2)

/* The stream modes, bits of runner_run_t.modes. */
enum {
    RUNNER_MODE_VALUES = 1,
    RUNNER_MODE_UPDATES = 2,
    RUNNER_MODE_MESSAGES = 4,
    RUNNER_MODE_MESSAGES_TUPLE = 8,
    RUNNER_MODE_TASKS = 16,
    RUNNER_MODE_CHECKPOINTS = 32,
    RUNNER_MODE_DEBUG = 64,
    RUNNER_MODE_CUSTOM = 128,
    RUNNER_MODE_EVENTS = 256
};

typedef struct runner_run_t runner_run_t;
struct runner_run_t {
    APR_RING_ENTRY(runner_run_t) link;
    apr_pool_t *pool;
    /* Of the node that executes; destroyed when the node is done. Whether that
     * is one of pending->nodes. */
    apr_pool_t *node_pool;
    bool is_node_counted;
    /* Of the lines of one event; cleared by runner_emit_finish(). */
    apr_pool_t *scratch;
    runner_output_t output;
    /* Shared by all runs. */
    runner_pending_t *pending;
    runner_http_t *http;
    runner_schedule_run_t transfers;
    /* NULL when `start` named an unknown graph. */
    const runner_graph_t *graph;

    /* From `start`; belongs to pool, as do its texts. */
    json_object *start;
    char run_id[AGENT_UUID_SIZE];
    char thread_id[AGENT_UUID_SIZE];
    int64_t epoch;
    int64_t attempt;
    unsigned modes;
    /* Breakpoints, bits 1 << runner_node_t. */
    unsigned interrupt_before;
    unsigned interrupt_after;

    runner_phase_t phase;
    /* The state: {messages: [..], ..}; belongs to pool. */
    json_object *values;
    /* The last checkpoint and its parent; "" when there is none. */
    char checkpoint_id[AGENT_UUID_SIZE];
    char parent_id[AGENT_UUID_SIZE];
    int64_t step;
    int64_t steps_left;
    runner_node_t next;
    /* The node that wrote the last checkpoint, as far as it is known. */
    runner_node_t last;
    /* A client continues after a breakpoint, which is not applied again. */
    bool is_resuming;
    /* Bytes of memory (weight.h): of the state, before its first checkpoint the
     * most that it may take; of the state as the tree that the next run builds;
     * of the start line. Length of the state's text at the last estimate, 0
     * before. */
    size_t weight;
    size_t tree_weight;
    size_t start_weight;
    size_t weighed_size;
    /* Bytes of text: of the state, before the first checkpoint of the start
     * line; of the executing node's replies and answer. */
    size_t text_size;
    size_t pending_size;
    /* A line is longer than the protocol allows, or the state than its limit.
     */
    bool has_overflown;

    /* Of the node that executes. */
    char task_id[AGENT_UUID_SIZE];
    runner_call_t *call;
    runner_jobs_t *jobs;
    /* The metadata of streamed messages; size of the last messages/partial. */
    json_object *message_metadata;
    size_t partial_size;
    /* The model's input, kept for mode events; belongs to node_pool. */
    json_object *model_input;

    /* When runner_run_advance() is due (core/clock.h). */
    apr_time_t wake_at;
};

#endif
