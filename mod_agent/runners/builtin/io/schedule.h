/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in which transfers start. A transfer may be silent until its
 * time-out and is never interrupted for another, so slots are kept free:
 *
 * - For runs: a slot for each run that has no active transfer, up to half of
 *   the slots. If the process has no more runs than that, the first transfer of
 *   a run never waits. A model call is always the first: no other call of its
 *   run is open at that time.
 * - For hosts: a host has at most three times as many active transfers as there
 *   are free slots that are not kept for runs. One silent host takes three
 *   quarters of the slots at most, the next one three quarters of the others.
 *   First transfers that never wait are counted, but not limited.
 *
 * A free slot goes to a run that has no active transfer, then to the host with
 * the fewest; at a host the runs take turns; of a run and a host the oldest
 * transfer starts first. Each function takes constant time: a run has at most
 * 16 transfers (RUNNER_TOOL_ACTIVE_MAX), the process 256.
 */
#ifndef AGENT_RUNNER_SCHEDULE_H
#define AGENT_RUNNER_SCHEDULE_H

#include <stdbool.h>

#include <apr_hash.h>
#include <apr_pools.h>

#include "core/ring.h"

typedef struct runner_schedule_host_t runner_schedule_host_t;
typedef struct runner_schedule_queue_t runner_schedule_queue_t;

typedef APR_RING_HEAD(runner_schedule_queues_t,
                      runner_schedule_queue_t) runner_schedule_queues_t;

/* The transfers of a run; lives longer than they do. */
typedef struct runner_schedule_run_t {
    int active;
    /* Its waiting transfers, a queue for each host. */
    runner_schedule_queues_t queues;
} runner_schedule_run_t;

/* A transfer; a member of a larger struct. */
typedef struct runner_schedule_entry_t {
    APR_RING_ENTRY(runner_schedule_entry_t) link;
    /* The larger struct. */
    void *baton;
    runner_schedule_run_t *run;
    runner_schedule_host_t *host;
    /* NULL once it is active. */
    runner_schedule_queue_t *queue;
} runner_schedule_entry_t;

typedef struct runner_schedule_t runner_schedule_t;

/* A schedule of active_max slots, 1 or more, for up to runs_max runs; in pool.
 */
runner_schedule_t *runner_schedule_make(int active_max, int runs_max,
                                        apr_pool_t *pool);

void runner_schedule_init_run(runner_schedule_run_t *run);

/* The host of that name, which is added if it is new. Hosts are never freed:
 * the configuration has a bounded number. */
runner_schedule_host_t *runner_schedule_find_host(runner_schedule_t *schedule,
                                                  const char *name);

/* Adds a waiting transfer, whose baton, run and host are set. */
void runner_schedule_add(runner_schedule_t *schedule,
                         runner_schedule_entry_t *entry);

/* The transfer that may start now; NULL when none waits or may. */
runner_schedule_entry_t *runner_schedule_next(runner_schedule_t *schedule);

/* The transfer that runner_schedule_next() returned is active now. */
void runner_schedule_start(runner_schedule_t *schedule,
                           runner_schedule_entry_t *entry);

/* Removes a transfer, waiting or active. */
void runner_schedule_remove(runner_schedule_t *schedule,
                            runner_schedule_entry_t *entry);

#endif
