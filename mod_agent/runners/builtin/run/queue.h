/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `start` lines that wait for memory. A run keeps the JSON tree of its state,
 * up to 30 times the text, until it ends. All runs and the queued lines
 * together take at most half of the process's memory limit (AgentRunnerMemory);
 * the other half is for the run that executes a step. When queued lines alone
 * take a quarter, the runner stops reading. The supervisor sends at most an
 * eighth (AGENT_START_MEMORY_PART), since a runner that does not read cannot
 * answer a ping.
 */
#ifndef AGENT_RUNNER_QUEUE_H
#define AGENT_RUNNER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <apr_pools.h>

#include "core/ring.h"
#include "core/uuid.h"
#include "weight.h"

/* The memory limit assumed when the process has none. */
#define RUNNER_QUEUE_MEMORY_DEFAULT ((size_t)1024 * 1024 * 1024)

typedef struct runner_queue_entry_t {
    APR_RING_ENTRY(runner_queue_entry_t) link;
    /* The pool of this entry. */
    apr_pool_t *pool;
    /* The line; text[length] is NUL. */
    char *text;
    size_t length;
    runner_weight_t weight;
    /* The run that the line starts; "" when the line has no valid id. */
    char run_id[AGENT_UUID_SIZE];
    int64_t epoch;
} runner_queue_entry_t;

typedef APR_RING_HEAD(runner_queue_ring_t,
                      runner_queue_entry_t) runner_queue_ring_t;

typedef struct runner_queue_t {
    apr_pool_t *pool;
    runner_queue_ring_t entries;
    int count;
    /* The length of all lines together. */
    size_t bytes;
    /* The length at which no more lines are read. */
    size_t bytes_max;
    /* The most that runs and queued lines may take together. */
    size_t memory_max;
} runner_queue_t;

void runner_queue_init(runner_queue_t *queue, apr_pool_t *pool);

/* Whether the queued lines have reached their limit: no line may be read. */
bool runner_queue_is_full(const runner_queue_t *queue);

/* Whether a run of that weight may begin while the other runs take `used`
 * bytes. */
bool runner_queue_admits(const runner_queue_t *queue, size_t used,
                         runner_weight_t weight);

/* Queues a copy of a line, which must be JSON (core/scan.h). */
void runner_queue_add(runner_queue_t *queue, const char *text, size_t length,
                      runner_weight_t weight);

/* The first entry that may begin while the runs take `used` bytes; NULL when
 * there is none. */
runner_queue_entry_t *runner_queue_find(const runner_queue_t *queue,
                                        size_t used);

/* The entry of that run and epoch; NULL when there is none. */
runner_queue_entry_t *runner_queue_find_run(const runner_queue_t *queue,
                                            const char *run_id, int64_t epoch);

/* Removes an entry; the caller must destroy its pool. */
void runner_queue_remove(runner_queue_t *queue, runner_queue_entry_t *entry);

#endif
