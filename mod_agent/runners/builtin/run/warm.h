/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of threads whose run has ended, for their next run: a run that
 * starts from the same checkpoint of the same thread and graph takes its state
 * from here. Any other checkpoint, for example after a run on another runner, a
 * rollback or a fork, has another id.
 *
 * They take a quarter of the process's memory at most, less when runs need it;
 * the one that was used longest ago is dropped first, and each after ten
 * minutes, since its thread may have been deleted.
 */
#ifndef AGENT_RUNNER_WARM_H
#define AGENT_RUNNER_WARM_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_hash.h>
#include <apr_time.h>

#include "state.h"

/* How long a state is kept. */
#define RUNNER_WARM_TIME apr_time_from_sec(600)

typedef struct runner_warm_state_t runner_warm_state_t;
typedef APR_RING_HEAD(runner_warm_ring_t,
                      runner_warm_state_t) runner_warm_ring_t;

struct runner_warm_t {
    apr_pool_t *pool;
    /* Thread id -> runner_warm_state_t. */
    apr_hash_t *by_thread;
    /* The one that was kept first is first; memory to be used again. */
    runner_warm_ring_t states;
    runner_warm_ring_t unused;
    size_t bytes;
};

/* Returns an empty one; the states that it keeps are freed with pool. */
runner_warm_t *runner_warm_make(apr_pool_t *pool);

/* Moves the state of a run that has ended into the table; nothing if its last
 * change has no checkpoint. now: core/clock.h. */
void runner_warm_keep(runner_warm_t *warm, runner_run_t *run, apr_time_t now);

/* Moves the state of the run's thread to the run, if it is that of this
 * checkpoint and graph. An older state of the thread is dropped. */
bool runner_warm_take(runner_warm_t *warm, runner_run_t *run,
                      const char *checkpoint_id);

/* Drops states until they take at most bytes_max bytes, and those that
 * were kept too long. Returns the bytes that were dropped. */
size_t runner_warm_trim(runner_warm_t *warm, size_t bytes_max, apr_time_t now);

#endif
