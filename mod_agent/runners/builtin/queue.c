/* SPDX-License-Identifier: Apache-2.0 */
/* See queue.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "queue.h"

#include <string.h>
#include <sys/resource.h>

#include <apr_strings.h>

static size_t find_memory(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    getrlimit(RLIMIT_DATA, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? RUNNER_QUEUE_MEMORY_DEFAULT
                                           : (size_t)limit.rlim_cur;
}

void runner_queue_init(runner_queue_t *queue, apr_pool_t *pool)
{
    size_t memory = find_memory();

    queue->pool = pool;
    queue->count = 0;
    queue->bytes = 0;
    queue->bytes_max = memory / 4;
    queue->held_max = memory / 2;
    APR_RING_INIT(&queue->entries, runner_queue_entry_t, link);
}

bool runner_queue_is_full(const runner_queue_t *queue)
{
    return queue->bytes >= queue->bytes_max;
}

bool runner_queue_admits(const runner_queue_t *queue, size_t held,
                         size_t weight)
{
    return held == 0 || weight <= RUNNER_QUEUE_SMALL
        || held + queue->bytes + weight <= queue->held_max;
}

void runner_queue_add(runner_queue_t *queue, const char *text, size_t length,
                      size_t weight)
{
    runner_queue_entry_t *entry;
    apr_pool_t *pool;

    apr_pool_create(&pool, queue->pool);
    entry = apr_pcalloc(pool, sizeof(*entry));
    entry->pool = pool;
    entry->text = apr_pstrmemdup(pool, text, length);
    entry->length = length;
    entry->weight = weight;
    APR_RING_INSERT_TAIL(&queue->entries, entry, runner_queue_entry_t, link);
    queue->count++;
    queue->bytes += length;
}

/* What stands behind the last entry. */
static bool is_end(const runner_queue_t *queue,
                   const runner_queue_entry_t *entry)
{
    return entry
        == APR_RING_SENTINEL(&queue->entries, runner_queue_entry_t, link);
}

runner_queue_entry_t *runner_queue_find(const runner_queue_t *queue,
                                        size_t held)
{
    runner_queue_entry_t *entry = APR_RING_FIRST(&queue->entries);

    while (!is_end(queue, entry)
           && !runner_queue_admits(queue, held, entry->weight)) {
        entry = APR_RING_NEXT(entry, link);
    }
    return is_end(queue, entry) ? NULL : entry;
}

runner_queue_entry_t *runner_queue_find_run(const runner_queue_t *queue,
                                            const char *run_id)
{
    runner_queue_entry_t *entry = APR_RING_FIRST(&queue->entries);

    while (!is_end(queue, entry)
           && memmem(entry->text, entry->length, run_id, strlen(run_id))
               == NULL) {
        entry = APR_RING_NEXT(entry, link);
    }
    return is_end(queue, entry) ? NULL : entry;
}

void runner_queue_remove(runner_queue_t *queue, runner_queue_entry_t *entry)
{
    APR_RING_REMOVE(entry, link);
    queue->count--;
    queue->bytes -= entry->length;
}
