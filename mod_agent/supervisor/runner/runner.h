/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runner processes: starting and replacing them, their pipes, what they say.
 */
#ifndef AGENT_SUPERVISOR_RUNNER_H
#define AGENT_SUPERVISOR_RUNNER_H

#include "core/buffer.h"
#include "../lease/lease.h"
#include "../process/spawner.h"
#include "../types.h"

typedef enum agent_runner_state_t {
    /* Did not say `ready` yet. */
    AGENT_RUNNER_STARTING,
    AGENT_RUNNER_READY,
    /* Gets no more runs; ends when idle or is killed. */
    AGENT_RUNNER_LEAVING,
    /* Was killed; what it says is not read any more. */
    AGENT_RUNNER_KILLED,
    /* Has ended; its memory is given back soon. */
    AGENT_RUNNER_DEAD
} agent_runner_state_t;

/* Runners for suspects at once: four groups of each of three sizes, and some.
 */
#define AGENT_RUNNERS_SUSPECT 16

/* What becomes of the runs of a runner that ends. */
typedef enum agent_loss_t {
    AGENT_LOSS_COUNTED,
    AGENT_LOSS_UNCOUNTED,
    /* They are not ours any more. */
    AGENT_LOSS_FORGET
} agent_loss_t;

/* How much of its output a runner may have in the log. */
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
    /* Names it for the spawner. */
    apr_uint32_t id;
    pid_t pid; /* 0 until the spawner has told it */
    agent_runner_state_t state;
    /* Started for suspects, so many of which may share it; 0: for any run. */
    int max_shared;
    int in_fd;
    int out_fd;
    int log_fd;
    /* What is to be written to it; what it wrote. */
    agent_buffer_t input;
    agent_buffer_t output;
    /* Bytes of output that hold no newline. */
    apr_size_t scanned;
    /* The first line of output, of that run, waits for room. */
    bool is_held;
    agent_lease_key_t held_key;
    agent_runner_log_t log;
    agent_lease_ring_t leases;
    /* Number of those; bytes of their start lines; it was ever given one. */
    int active;
    apr_size_t started_bytes;
    bool is_used;
    int slots;
    agent_loss_t loss;
    const char *reason;
    apr_time_t started_at;
    /* It must be ready, or gone, by then. */
    apr_time_t limit_at;
    apr_time_t ping_at;
    /* AGENT_NEVER while no answer is due. */
    apr_time_t pong_by;
    apr_int64_t ping_id;
};

/* Starts that failed in a row, and when the next one may begin. */
typedef struct agent_back_off_t {
    int failures;
    apr_time_t start_at;
} agent_back_off_t;

APR_RING_HEAD(agent_runner_ring_t, agent_runner_t);
typedef struct agent_runner_ring_t agent_runner_ring_t;

typedef struct agent_runner_table_t {
    agent_runner_ring_t all;
    apr_uint32_t last_id;
    /* A run that kills its runner at once delays no others. */
    agent_back_off_t ordinary;
    agent_back_off_t suspects;
    /* They are not read, because too much waits to be written. */
    bool is_full;
} agent_runner_table_t;

void agent_runner_init(agent_supervisor_t *sv);

/* Starts what is missing; returns when to be called again at the latest. */
apr_time_t agent_runner_replenish(agent_supervisor_t *sv);

/* Runs that could be started now. */
int agent_runner_free_slots(const agent_supervisor_t *sv);

/* The runner with the fewest runs; NULL when none has a free slot: what was
 * free when a claim was sent may be gone when its answer comes. */
agent_runner_t *agent_runner_least_loaded(const agent_supervisor_t *sv);

/* For a suspect: a runner that has only such, at most max_shared of them,
 * perhaps a new one that is not ready yet. NULL when none can be had. */
agent_runner_t *agent_runner_for_suspect(agent_supervisor_t *sv,
                                         int max_shared);

/* Suspects that could be started now: one for each runner that still can be.
 * None while no runner is ready. */
int agent_runner_free_suspect_runners(const agent_supervisor_t *sv);

/* News of the spawner. */
void agent_runner_receive_news(agent_supervisor_t *sv);

/* Gives back what ended runners held; not while the poll set is walked. */
void agent_runner_reap(agent_supervisor_t *sv);

/* Kills it; its runs are treated as `loss` says at its end, or after 5 s. */
void agent_runner_kill(agent_supervisor_t *sv, agent_runner_t *runner,
                       agent_loss_t loss, const char *reason);

/*
 * Takes its runs from a runner that is no longer read. A run that was alone in
 * the runner counts the attempt, where attempts are to be counted. Several are
 * suspects: tried again, uncounted, a quarter together, until one is alone.
 */
void agent_runner_give_back(agent_supervisor_t *sv, agent_runner_t *runner);

/* It broke the protocol: killed, its runs count the attempt. */
void agent_runner_breach(agent_supervisor_t *sv, agent_runner_t *runner,
                         const char *what);

/* Kills all at once; their runs are treated as `loss` says at once too. */
void agent_runner_kill_all(agent_supervisor_t *sv, agent_loss_t loss,
                           const char *reason);

#endif
