/* SPDX-License-Identifier: Apache-2.0 */
/* The table of runner processes of all pools: starting and killing them.
 * slots.h chooses them; exit.h has their end, watch.h limits, io.h pipes. */
#ifndef AGENT_SUPERVISOR_RUNNER_H
#define AGENT_SUPERVISOR_RUNNER_H

#include "../../../core/buffer.h"
#include "../../base/context.h"
#include "../../base/poll.h"
#include "../../lease/lease.h"
#include "../../process/spawner.h"
#include "pool.h"

typedef enum agent_runner_state_t {
    AGENT_RUNNER_STARTING, /* it has not sent `ready` yet */
    AGENT_RUNNER_READY,
    /* It gets no more runs, and ends when it is idle or is killed. */
    AGENT_RUNNER_DRAINING,
    AGENT_RUNNER_KILLED, /* its output is not read */
    AGENT_RUNNER_DEAD
} agent_runner_state_t;

/* From a kill to the loss of the runs, if the exit is not reported. */
#define AGENT_RUNNER_KILL_TIMEOUT apr_time_from_sec(5)

/* How the runs of a runner that ends are treated. */
typedef enum agent_loss_t {
    AGENT_LOSS_COUNTED,
    AGENT_LOSS_UNCOUNTED,
    AGENT_LOSS_FORGET /* they are leased to other workers */
} agent_loss_t;

/* Standard output and error of a runner (log.h). */
typedef struct agent_runner_log_t {
    agent_buffer_t text; /* the line that is not complete yet */
    bool is_skipping;    /* the rest of a line that was too long */
    apr_time_t since;    /* begin of this interval */
    int lines;           /* lines written and omitted in it */
    unsigned dropped;
    char dropped_run[AGENT_UUID_SIZE]; /* that of most of them, or "" */
    int votes;                         /* for it */
} agent_runner_log_t;

struct agent_runner_t {
    APR_RING_ENTRY(agent_runner_t) link;         /* in its table */
    APR_RING_ENTRY(agent_runner_t) pool_link;    /* in runner_pool */
    APR_RING_ENTRY(agent_runner_t) pending_link; /* in table->pending, or not */
    agent_runner_table_t *table;
    apr_pool_t *pool;
    agent_runner_pool_t *runner_pool;
    apr_uint32_t id; /* at the spawner */
    pid_t pid;       /* 0 until the spawner has started it */
    agent_runner_state_t state;
    int max_shared;         /* of quarantined runs; 0: an ordinary one */
    bool wants_replacement; /* `spent` of a pong */
    bool is_replaced;       /* drained when another one is ready (recycle.h) */
    bool lacks_graph;       /* only for a graph: kept if its import fails */
    bool drains_without_limit;           /* replaced; see drain.h */
    agent_poll_watch_t in, out, log_out; /* io.h waits for the three */
    /* To be written to it (agent_runner_input()); bytes written so far. */
    agent_buffer_t input;
    apr_uint64_t written;
    /* Read from it; bytes of that which contain no newline. */
    agent_buffer_t output;
    apr_size_t scanned;
    bool is_held; /* not read: the first line, of run held_key, waits */
    agent_lease_key_t held_key;
    agent_runner_log_t log;
    agent_lease_group_t group;
    agent_reported_graph_t *importing; /* until it is ready; NULL: none */
    bool is_warned; /* an earlier start has failed: `failed` of its hello */
    bool *left_out; /* graphs that had failed at its start, or NULL */
    int slots;      /* 0 until it is ready */
    agent_graph_set_t *set; /* NULL until it is ready */
    agent_loss_t loss;      /* how its runs are treated at its end */
    const char *reason;     /* why, a constant */
    apr_time_t started_at;
    apr_time_t limit_at; /* when it must be ready, or must have ended */
    /* When the next ping or the pong is due, or AGENT_CLOCK_NEVER. */
    apr_time_t ping_at;
    apr_time_t pong_by;
    apr_int64_t ping_id;
};

struct agent_runner_table_t {
    agent_context_t *context;
    agent_poll_t *poll;
    agent_spawner_t spawner;
    agent_runner_pool_t *pools;
    int pool_count;
    agent_pool_lists_t lists;
    agent_runner_ring_t all;
    int count;                   /* of all */
    agent_runner_ring_t pending; /* see agent_runner_touch() */
    int quarantined;             /* quarantine runners that are not dead */
    apr_uint32_t last_id;
    bool is_full;    /* none is read: too much output is not committed */
    bool is_stopped; /* all are (SIGSTOP): the lease was not renewed */
};

/* Makes the table and its pools. poll: for the pipes of its runners. */
void agent_runner_init(agent_runner_table_t *table, agent_context_t *context,
                       agent_poll_t *poll);

/* Lists the runner for the next iteration, which may then wait for other pipes.
 * It stays listed while it has unread input, is held or dead. */
static inline void agent_runner_touch(agent_runner_t *runner)
{
    AGENT_RING_ENTER(&runner->table->pending, runner, agent_runner_t,
                     pending_link);
}

/* Returns the runner's input, for a caller that appends to it. */
static inline agent_buffer_t *agent_runner_input(agent_runner_t *runner)
{
    agent_runner_touch(runner);
    return &runner->input;
}

/* Adds a runner whose pool and max_shared are set. */
void agent_runner_link(agent_runner_table_t *table, agent_runner_t *runner);

/* Starts a runner. max_shared: of quarantined runs; 0: an ordinary one.
 * NULL: it could not be started, which is logged and counted as a failure. */
agent_runner_t *agent_runner_start(agent_runner_table_t *table,
                                   agent_runner_pool_t *pool, int max_shared);

agent_runner_t *agent_runner_find(const agent_runner_table_t *table,
                                  apr_uint32_t id);

/* Kills a runner; its runs are treated as `loss` says at its end. */
void agent_runner_kill(agent_runner_table_t *table, agent_runner_t *runner,
                       agent_loss_t loss, const char *reason);
/* Kills a runner that broke the protocol, as _COUNTED; what: for the log. */
void agent_runner_breach(agent_runner_table_t *table, agent_runner_t *runner,
                         const char *what);

/* Signals all runners that have not ended. */
void agent_runner_signal_all(agent_runner_table_t *table, int number);
/* Marks a runner dead, once; it is freed later. */
void agent_runner_set_dead(agent_runner_table_t *table, agent_runner_t *runner);
/* Frees runners that have ended. No handler of a descriptor may call it. */
void agent_runner_free_dead(agent_runner_table_t *table);

/* False while the runner is stopped or not read: no answer is due then. */
bool agent_runner_may_answer(const agent_runner_table_t *table,
                             const agent_runner_t *runner);

#endif
