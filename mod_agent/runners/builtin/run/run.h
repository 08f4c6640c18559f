/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of a built-in graph: the nodes `agent` (calls the model) and `tools`
 * (calls what the model asked for), one checkpoint after each.
 */
#ifndef AGENT_RUNNER_RUN_H
#define AGENT_RUNNER_RUN_H

#include <apr_ring.h>

#include "runners/builtin/model/call.h"
#include "runners/builtin/tool/jobs.h"
#include "runners/builtin/wire.h"

typedef enum runner_node_t {
    RUNNER_NODE_NONE,
    RUNNER_NODE_START,
    RUNNER_NODE_AGENT,
    RUNNER_NODE_TOOLS
} runner_node_t;

typedef enum runner_phase_t {
    /* Nothing done yet. */
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
    /* Of the node that executes; destroyed when it is done. */
    apr_pool_t *node_pool;
    /* Of one message to the supervisor. */
    apr_pool_t *scratch;
    runner_wire_t *wire;
    runner_http_t *http;
    /* NULL when the supervisor named an unknown one. */
    const runner_graph_t *graph;

    /* From `start`; belongs to pool, and so do the texts. */
    json_object *start;
    char run_id[AGENT_UUID_SIZE];
    char thread_id[AGENT_UUID_SIZE];
    int64_t epoch;
    int64_t attempt;
    unsigned modes;
    /* Bits 1 << runner_node_t. */
    unsigned interrupt_before;
    unsigned interrupt_after;

    runner_phase_t phase;
    /* The state: {messages: [..], ..}; belongs to pool. */
    json_object *values;
    /* The last checkpoint and the one before it; "" when there is none. */
    char checkpoint_id[AGENT_UUID_SIZE];
    char parent_id[AGENT_UUID_SIZE];
    int64_t step;
    int64_t steps_left;
    runner_node_t next;
    /* The node that wrote the last checkpoint, as far as it is known. */
    runner_node_t last;
    /* A client continues after a breakpoint: it does not stop there again. */
    bool is_resuming;
    /* Bytes of the trees that it holds, about (queue.h), and of the text for
     * which that was found. */
    size_t weight;
    size_t weighed_size;
    /* Bytes put on the wire since `start` or the last `go`; lines held back;
     * bytes of these that were asked for, 0: no answer is due (held.h). */
    size_t said;
    runner_buffer_t held;
    size_t asked;
    /* A line did not fit the protocol, or the state its limits. */
    bool has_overflown;

    /* Of the node that executes. */
    char task_id[AGENT_UUID_SIZE];
    runner_call_t *call;
    runner_jobs_t *jobs;
    /* Metadata of streamed messages; size of the last messages/partial. */
    json_object *message_metadata;
    size_t partial_size;
    /* What the model was asked, kept for mode events; belongs to node_pool. */
    json_object *model_input;

    /* When runner_run_advance() has something to do. */
    apr_time_t wake_at;
};

/* The name of a node in the state and the streams; NULL for none. */
const char *runner_node_name(runner_node_t node);

/* The node of that name; RUNNER_NODE_NONE when it is not one of ours. */
runner_node_t runner_node_find(const char *name);

/*
 * Makes a run of a `start` message; start belongs to pool. APR_EGENERAL when
 * the message breaks the protocol (*reason says how).
 */
apr_status_t runner_run_create(runner_run_t **out, json_object *start,
                               runner_wire_t *wire, runner_http_t *http,
                               const runner_graph_t *graph, const char **reason,
                               apr_pool_t *pool);

/* Does the next step, if its time has come; sets wake_at. */
void runner_run_advance(runner_run_t *run);

/* Stops at once, keeps what there is as a checkpoint and ends interrupted. */
void runner_run_cancel(runner_run_t *run);

#endif
