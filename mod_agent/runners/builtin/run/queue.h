/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start lines that wait for memory. A run keeps the tree of its state, up to 30
 * times the text, until it ends: what runs hold together, with the texts of
 * those that wait, stays below half of what the process may take
 * (AgentRunnerMemory), so that one that computes has the other half. Texts
 * alone are at most a quarter: then nothing more is read. The supervisor stops
 * before that (supervisor/start.h), since a runner that does not read answers
 * no ping.
 */
#ifndef AGENT_RUNNER_QUEUE_H
#define AGENT_RUNNER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <apr_pools.h>
#include <apr_ring.h>

#include "core/uuid.h"

/* Taken for the memory of the process when it has no limit. */
#define RUNNER_QUEUE_MEMORY_DEFAULT ((size_t)1024 * 1024 * 1024)
/* A run that holds no more than this never waits. */
#define RUNNER_QUEUE_SMALL ((size_t)1024 * 1024)

typedef struct runner_queue_entry_t {
    APR_RING_ENTRY(runner_queue_entry_t) link;
    /* Of this entry; who takes it destroys it. */
    apr_pool_t *pool;
    /* The line; text[length] is NUL. */
    char *text;
    size_t length;
    size_t weight;
    /* The run that it starts; "" when it does not say. */
    char run_id[AGENT_UUID_SIZE];
    int64_t epoch;
} runner_queue_entry_t;

typedef APR_RING_HEAD(runner_queue_ring_t,
                      runner_queue_entry_t) runner_queue_ring_t;

typedef struct runner_queue_t {
    apr_pool_t *pool;
    runner_queue_ring_t entries;
    int count;
    /* Length of all texts together, and its bound. */
    size_t bytes;
    size_t bytes_max;
    /* What runs and texts may hold together. */
    size_t held_max;
} runner_queue_t;

void runner_queue_init(runner_queue_t *queue, apr_pool_t *pool);

/* Whether so much waits that no line may be read. */
bool runner_queue_is_full(const runner_queue_t *queue);

/* Whether a run of that weight may begin beside those that hold so much. */
bool runner_queue_admits(const runner_queue_t *queue, size_t held,
                         size_t weight);

/* Keeps a copy of a line, which must be JSON (core/scan.h). */
void runner_queue_add(runner_queue_t *queue, const char *text, size_t length,
                      size_t weight);

/* The first entry that may begin now; NULL when there is none. */
runner_queue_entry_t *runner_queue_find(const runner_queue_t *queue,
                                        size_t held);

/* The entry that starts the run under that epoch; NULL when there is none. */
runner_queue_entry_t *runner_queue_find_run(const runner_queue_t *queue,
                                            const char *run_id, int64_t epoch);

/* The entry leaves the queue; its pool is the caller's now. */
void runner_queue_remove(runner_queue_t *queue, runner_queue_entry_t *entry);

#endif
