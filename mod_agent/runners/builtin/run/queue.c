/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of `start` lines, bounded by the memory limit. */
#include "queue.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <apr_strings.h>

#include "core/raw.h"

static size_t get_memory_limit(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    getrlimit(RLIMIT_DATA, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? RUNNER_QUEUE_MEMORY_DEFAULT
                                           : (size_t)limit.rlim_cur;
}

void runner_queue_init(runner_queue_t *queue, apr_pool_t *pool)
{
    size_t memory = get_memory_limit();

    queue->pool = pool;
    queue->count = 0;
    queue->bytes = 0;
    queue->bytes_max = memory / 4;
    queue->memory_max = memory / 2;
    APR_RING_INIT(&queue->entries, runner_queue_entry_t, link);
}

bool runner_queue_is_full(const runner_queue_t *queue)
{
    return queue->bytes >= queue->bytes_max;
}

bool runner_queue_admits(const runner_queue_t *queue, size_t used,
                         runner_weight_t weight)
{
    return used == 0 || weight.begun <= RUNNER_WEIGHT_SMALL
        || used + queue->bytes + weight.begun <= queue->memory_max;
}

/* Reads the id and epoch of the run from the members of the line itself: a
 * client chooses the members of the objects in it. */
static void read_key(runner_queue_entry_t *entry)
{
    size_t space = strspn(entry->text, " \t\r");
    agent_raw_t line = {entry->text + space, entry->length - space};
    agent_raw_t epoch = agent_raw_get(line, "epoch");
    const char *run_id = agent_raw_string(agent_raw_get(line, "run_id"),
                                          entry->pool);

    if (run_id == NULL || !agent_uuid_parse(entry->run_id, run_id)
        || agent_raw_kind(epoch) != AGENT_RAW_NUMBER) {
        entry->run_id[0] = '\0';
        return;
    }
    entry->epoch = strtoll(epoch.text, NULL, 10);
}

void runner_queue_add(runner_queue_t *queue, const char *text, size_t length,
                      runner_weight_t weight)
{
    runner_queue_entry_t *entry;
    apr_pool_t *pool;

    apr_pool_create(&pool, queue->pool);
    entry = apr_pcalloc(pool, sizeof(*entry));
    entry->pool = pool;
    entry->text = apr_pstrmemdup(pool, text, length);
    entry->length = length;
    entry->weight = weight;
    read_key(entry);
    APR_RING_INSERT_TAIL(&queue->entries, entry, runner_queue_entry_t, link);
    queue->count++;
    queue->bytes += length;
}

static bool is_end(const runner_queue_t *queue,
                   const runner_queue_entry_t *entry)
{
    return entry
        == APR_RING_SENTINEL(&queue->entries, runner_queue_entry_t, link);
}

runner_queue_entry_t *runner_queue_find(const runner_queue_t *queue,
                                        size_t used)
{
    runner_queue_entry_t *entry = APR_RING_FIRST(&queue->entries);

    while (!is_end(queue, entry)
           && !runner_queue_admits(queue, used, entry->weight)) {
        entry = APR_RING_NEXT(entry, link);
    }
    return is_end(queue, entry) ? NULL : entry;
}

runner_queue_entry_t *runner_queue_find_run(const runner_queue_t *queue,
                                            const char *run_id, int64_t epoch)
{
    runner_queue_entry_t *entry = APR_RING_FIRST(&queue->entries);

    while (!is_end(queue, entry)
           && (entry->run_id[0] == '\0' || entry->epoch != epoch
               || strcmp(entry->run_id, run_id) != 0)) {
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
