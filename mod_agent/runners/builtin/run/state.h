/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one run of a built-in graph. */
#ifndef AGENT_RUNNER_STATE_H
#define AGENT_RUNNER_STATE_H

#include "core/ring.h"
#include "core/uuid.h"
#include "node.h"
#include "output.h"
#include "pending.h"
#include "runners/builtin/model/call.h"
#include "runners/builtin/tool/jobs.h"

typedef enum runner_phase_t {
    /* Created, or the state has been read. */
    RUNNER_PHASE_BEGIN,
    /* The state is requested from the supervisor (load.h). */
    RUNNER_PHASE_LOAD,
    /* Between two nodes. */
    RUNNER_PHASE_NEXT,
    RUNNER_PHASE_AGENT,
    RUNNER_PHASE_TOOLS,
    RUNNER_PHASE_OVER
} runner_phase_t;

/* The longest cursor, with its NUL. */
#define RUNNER_CURSOR_SIZE 128

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
    RUNNER_MODE_EVENTS = 256,
    RUNNER_MODE_TOOLS = 512
};

typedef struct runner_run_t runner_run_t;
typedef struct runner_warm_t runner_warm_t;
struct runner_run_t {
    APR_RING_ENTRY(runner_run_t) link;
    apr_pool_t *pool;
    apr_pool_t *node_pool; /* until the node that executes is done */
    /* The objects of the lines of one event; cleared by runner_emit_clear(). */
    apr_pool_t *scratch;
    runner_output_t output;
    /* Shared by all runs. */
    runner_pending_t *pending;
    runner_warm_t *warm;
    runner_http_t *http;
    runner_schedule_run_t transfers;
    /* NULL when `start` named an unknown graph. */
    const runner_graph_t *graph;

    /* From `start` or `call`; belongs to pool, as do its texts. */
    json_object *start;
    bool is_call;      /* it has no events, and executes no node */
    bool is_sync;      /* durability: a node waits for the commit before it */
    size_t supersteps; /* of the call `update`, which were applied */
    /* The result of another call, which may be null; belongs to pool. */
    json_object *value;
    bool has_value;
    char run_id[AGENT_UUID_SIZE];
    char thread_id[AGENT_UUID_SIZE];
    int64_t epoch;
    int64_t attempt;
    unsigned modes;
    unsigned interrupt_before; /* breakpoints, bits 1 << runner_node_t */
    unsigned interrupt_after;

    runner_phase_t phase;
    /* The last request or checkpoint with `ack`; the one that the next node
     * waits for; 0: none. Where the next part begins, "" at first. */
    int64_t request_id;
    int64_t uncommitted;
    char cursor[RUNNER_CURSOR_SIZE];
    /* Why the state cannot be read; NULL otherwise. */
    runner_problem_t *load_problem;
    /* The memory of the state of the last checkpoint and the length of its
     * text; the part of weight that stands for it until it has been read. */
    size_t state_weight;
    size_t state_size;
    size_t expected_weight;
    /* Messages of the last checkpoint; as many of the first ones are unchanged
     * (difference.h). */
    size_t saved_count;
    size_t kept;
    runner_tally_t tally;
    /* The state of the last checkpoint has been read. */
    bool is_loaded;
    bool is_checked; /* all messages have an id and a type */
    /* The last checkpoint is one of this run. */
    bool has_saved;
    /* values are those of the checkpoint checkpoint_id. */
    bool is_at_checkpoint;
    /* The state: {messages: [..], ..}; belongs to pool. */
    json_object *values;
    /* The last checkpoint and its parent; "" when there is none. */
    char checkpoint_id[AGENT_UUID_SIZE];
    char parent_id[AGENT_UUID_SIZE];
    int64_t step;
    int64_t steps_left; /* nodes that the run may still execute */
    /* The next node; while a node executes, that node. */
    runner_node_t next;
    /* The node that wrote the last checkpoint, as far as it is known. */
    runner_node_t last;
    /* The run is to stop at its next checkpoint. */
    bool is_stopping;
    /* A client continues after a breakpoint, which is not applied again. */
    bool is_resuming;
    /* A line is longer than the protocol allows, or the state too large. */
    bool is_too_large;

    /* The memory of the state in bytes (weight.h); before the first checkpoint
     * the most that it may take. */
    size_t weight;
    /* The same for the tree that the next run of the thread builds. */
    size_t tree_weight;
    /* The memory of the tree of the start line. */
    size_t start_weight;
    /* Bytes of the state's text; before the first checkpoint an estimate. */
    size_t text_size;
    /* Bytes of the answer or the replies of the node that executes. */
    size_t pending_size;

    /* The members below are of the node that executes. */
    char task_id[AGENT_UUID_SIZE];
    runner_call_t *call;
    runner_jobs_t *jobs;
    /* The metadata of streamed messages; belongs to node_pool. */
    json_object *message_metadata;
    /* The size of the answer at the last messages/partial, plus one; 0 before.
     */
    size_t partial_size;
    /* The model's input, kept for mode events; belongs to node_pool. */
    json_object *model_input;

    /* When runner_run_advance() is due (core/clock.h). */
    apr_time_t wake_at;
};

#endif
