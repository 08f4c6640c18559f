/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of runner processes: starting, choosing and killing them. exit.h
 * has their end, watch.h their limits, io.h their pipes.
 */
#ifndef AGENT_SUPERVISOR_RUNNER_H
#define AGENT_SUPERVISOR_RUNNER_H

#include "../../core/buffer.h"
#include "../context.h"
#include "../lease/lease.h"
#include "../process/spawner.h"

typedef enum agent_runner_state_t {
    /* It has not sent `ready` yet. */
    AGENT_RUNNER_STARTING,
    AGENT_RUNNER_READY,
    /* It gets no more runs, and ends when it is idle or is killed. */
    AGENT_RUNNER_LEAVING,
    /* Its output is not read. */
    AGENT_RUNNER_KILLED,
    AGENT_RUNNER_DEAD
} agent_runner_state_t;

/* Runners for suspects: enough for four groups of each of three sizes. */
#define AGENT_RUNNERS_SUSPECT 16

/* How the runs of a runner that ends are treated. */
typedef enum agent_loss_t {
    AGENT_LOSS_COUNTED,
    AGENT_LOSS_UNCOUNTED,
    /* The runs are leased to other workers: forgotten. */
    AGENT_LOSS_FORGET
} agent_loss_t;

/* Limits the lines that a runner writes to the log. */
typedef struct agent_runner_log_t {
    agent_buffer_t text;
    /* The rest of a line that was too long is skipped. */
    bool is_skipping;
    apr_time_t since;
    int lines;
    unsigned dropped;
} agent_runner_log_t;

struct agent_runner_t {
    APR_RING_ENTRY(agent_runner_t) link;
    apr_pool_t *pool;
    apr_uint32_t id; /* at the spawner */
    pid_t pid;       /* 0 until the spawner has started it */
    agent_runner_state_t state;
    /* Suspects that may share it; 0: an ordinary runner. */
    int max_shared;
    int in_fd;
    int out_fd;
    int log_fd;
    /* To be written to it, and bytes written so far; read from it. */
    agent_buffer_t input;
    apr_uint64_t written;
    agent_buffer_t output;
    /* Bytes of output that are known to contain no newline. */
    apr_size_t scanned;
    /* Not read: its first line, of run held_key, waits for room. */
    bool is_held;
    agent_lease_key_t held_key;
    agent_runner_log_t log;
    agent_lease_group_t group;
    int slots;
    agent_loss_t loss;
    const char *reason;
    apr_time_t started_at;
    /* When it must be ready, or must have ended. */
    apr_time_t limit_at;
    apr_time_t ping_at;
    /* AGENT_CLOCK_NEVER while no pong is due. */
    apr_time_t pong_by;
    apr_int64_t ping_id;
};

/* Failed starts in a row, and when the next one may begin. */
typedef struct agent_runner_pause_t {
    int failures;
    apr_time_t start_at;
} agent_runner_pause_t;

APR_RING_HEAD(agent_runner_ring_t, agent_runner_t);
typedef struct agent_runner_ring_t agent_runner_ring_t;
typedef struct agent_runner_table_t {
    agent_context_t *context;
    agent_spawner_t spawner;
    agent_runner_ring_t all;
    apr_uint32_t last_id;
    /* Separate: a run that kills its runner at once delays no others. */
    agent_runner_pause_t ordinary;
    agent_runner_pause_t suspects;
    /* No runner is read: too much output is not committed. */
    bool is_full;
    /* All are stopped (SIGSTOP): the worker's lease was not renewed. */
    bool is_stopped;
} agent_runner_table_t;

void agent_runner_init(agent_runner_table_t *table, agent_context_t *context);

/* Starts missing runners; returns when to be called again at the latest. */
apr_time_t agent_runner_replenish(agent_runner_table_t *table);

/* Free slots of ordinary runners. */
int agent_runner_free_slots(const agent_runner_table_t *table);

/* The ordinary runner with the fewest runs; NULL: none has a free slot. */
agent_runner_t *agent_runner_least_loaded(const agent_runner_table_t *table);

/* A runner for at most max_shared suspects, perhaps a new one that is not ready
 * yet; NULL: none. */
agent_runner_t *agent_runner_for_suspect(agent_runner_table_t *table,
                                         int max_shared);

/* Runners for suspects that can be started; 0 while no other is ready. */
int agent_runner_free_suspect_runners(const agent_runner_table_t *table);

/* NULL: none. */
agent_runner_t *agent_runner_find(const agent_runner_table_t *table,
                                  apr_uint32_t id);

/* Kills it; its runs are treated as `loss` says at its end, or after 5 s. */
void agent_runner_kill(agent_runner_table_t *table, agent_runner_t *runner,
                       agent_loss_t loss, const char *reason);

/* Kills a runner that broke the protocol; its runs count the attempt. */
void agent_runner_breach(agent_runner_table_t *table, agent_runner_t *runner,
                         const char *what);

/* Signals all runners that have not ended. */
void agent_runner_signal_all(agent_runner_table_t *table, int number);

/* A runner could not be started, or ended too soon: the next one of its kind
 * is started after 0.1 s, doubled to 5 s. */
void agent_runner_count_failure(agent_runner_table_t *table, int max_shared);

/* One lived long enough: the next one of its kind starts at once. */
void agent_runner_count_success(agent_runner_table_t *table, int max_shared);

/* Frees runners that have ended. No handler of the poll set may call it. */
void agent_runner_free_dead(agent_runner_table_t *table);

/* False while the runner is stopped or not read: no answer is due then. */
bool agent_runner_may_answer(const agent_runner_table_t *table,
                             const agent_runner_t *runner);

#endif
