/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting transfers in queues, one for each run and host. A host has two levels
 * of queues: those of runs without an active transfer, and those of other runs.
 * At each level the hosts are sorted by the number of their active transfers:
 * if the host with the fewest must wait, all of them must.
 */
#include "schedule.h"

#include <apr_strings.h>

/* The part of the slots that is kept for runs without an active transfer. */
#define KEPT_SHARE 2
/* Active transfers of a host for each slot that it leaves to others. */
#define HOST_FACTOR 3

typedef enum level_t { LEVEL_FIRST, LEVEL_FURTHER, LEVELS } level_t;

typedef struct host_level_t host_level_t;
struct host_level_t {
    /* In a ring of schedule->hosts, unless queues is empty. */
    APR_RING_ENTRY(host_level_t) link;
    runner_schedule_host_t *host;
    level_t level;
    runner_schedule_queues_t queues;
};

typedef APR_RING_HEAD(host_levels_t, host_level_t) host_levels_t;

struct runner_schedule_host_t {
    int active;
    host_level_t levels[LEVELS];
};

struct runner_schedule_queue_t {
    /* In level->queues, or in schedule->free_queues. */
    APR_RING_ENTRY(runner_schedule_queue_t) link;
    /* In run->queues. */
    APR_RING_ENTRY(runner_schedule_queue_t) run_link;
    host_level_t *level;
    APR_RING_HEAD(entries_t, runner_schedule_entry_t) entries;
};

struct runner_schedule_t {
    apr_pool_t *pool;
    int active_max;
    /* The most slots that are kept for runs without an active transfer. */
    int kept_max;
    /* There is such a slot for each run. */
    bool is_kept_for_all;
    int active;
    /* Runs that have an active transfer. */
    int active_runs;
    /* name -> runner_schedule_host_t. */
    apr_hash_t *hosts_by_name;
    /* The hosts that have queues, by the number of their active transfers. All
     * rings before `fewest` are empty. */
    host_levels_t *hosts[LEVELS];
    int fewest[LEVELS];
    runner_schedule_queues_t free_queues;
};

runner_schedule_t *runner_schedule_make(int active_max, int runs_max,
                                        apr_pool_t *pool)
{
    runner_schedule_t *schedule = apr_pcalloc(pool, sizeof(*schedule));
    int half = active_max / KEPT_SHARE;

    schedule->pool = pool;
    schedule->active_max = active_max;
    schedule->is_kept_for_all = runs_max <= half;
    schedule->kept_max = schedule->is_kept_for_all ? runs_max : half;
    schedule->hosts_by_name = apr_hash_make(pool);
    APR_RING_INIT(&schedule->free_queues, runner_schedule_queue_t, link);
    for (int level = 0; level < LEVELS; level++) {
        schedule->hosts[level] = apr_palloc(
            pool, ((size_t)active_max + 1) * sizeof(host_levels_t));
        for (int i = 0; i <= active_max; i++) {
            APR_RING_INIT(&schedule->hosts[level][i], host_level_t, link);
        }
    }
    return schedule;
}

void runner_schedule_init_run(runner_schedule_run_t *run)
{
    run->active = 0;
    APR_RING_INIT(&run->queues, runner_schedule_queue_t, run_link);
}

runner_schedule_host_t *runner_schedule_find_host(runner_schedule_t *schedule,
                                                  const char *name)
{
    runner_schedule_host_t *host = apr_hash_get(schedule->hosts_by_name, name,
                                                APR_HASH_KEY_STRING);

    if (host != NULL) {
        return host;
    }
    host = apr_pcalloc(schedule->pool, sizeof(*host));
    for (int level = 0; level < LEVELS; level++) {
        host->levels[level].host = host;
        host->levels[level].level = (level_t)level;
        APR_RING_INIT(&host->levels[level].queues, runner_schedule_queue_t,
                      link);
    }
    apr_hash_set(schedule->hosts_by_name, apr_pstrdup(schedule->pool, name),
                 APR_HASH_KEY_STRING, host);
    return host;
}

static bool has_queues(const host_level_t *level)
{
    return !APR_RING_EMPTY(&level->queues, runner_schedule_queue_t, link);
}

static void insert_host(runner_schedule_t *schedule, host_level_t *level)
{
    int active = level->host->active;
    int *fewest = &schedule->fewest[level->level];

    APR_RING_INSERT_TAIL(&schedule->hosts[level->level][active], level,
                         host_level_t, link);
    *fewest = active < *fewest ? active : *fewest;
}

static void count_host(runner_schedule_t *schedule,
                       runner_schedule_host_t *host, int change)
{
    host->active += change;
    for (int i = 0; i < LEVELS; i++) {
        if (has_queues(&host->levels[i])) {
            APR_RING_REMOVE(&host->levels[i], link);
            insert_host(schedule, &host->levels[i]);
        }
    }
}

/* Puts a queue last at a level of its host. */
static void insert_queue(runner_schedule_t *schedule,
                         runner_schedule_queue_t *queue,
                         runner_schedule_host_t *host, level_t number)
{
    host_level_t *level = &host->levels[number];
    bool is_sorted = has_queues(level);

    queue->level = level;
    APR_RING_INSERT_TAIL(&level->queues, queue, runner_schedule_queue_t, link);
    if (!is_sorted) {
        insert_host(schedule, level);
    }
}

static void remove_queue(runner_schedule_queue_t *queue)
{
    APR_RING_REMOVE(queue, link);
    if (!has_queues(queue->level)) {
        APR_RING_REMOVE(queue->level, link);
    }
}

static level_t get_level(const runner_schedule_run_t *run)
{
    return run->active == 0 ? LEVEL_FIRST : LEVEL_FURTHER;
}

static void move_queue(runner_schedule_t *schedule,
                       runner_schedule_queue_t *queue, level_t level)
{
    runner_schedule_host_t *host = queue->level->host;

    remove_queue(queue);
    insert_queue(schedule, queue, host, level);
}

static void count_run(runner_schedule_t *schedule, runner_schedule_run_t *run,
                      int change)
{
    level_t before = get_level(run);
    runner_schedule_queue_t *queue;

    run->active += change;
    if (get_level(run) == before) {
        return;
    }
    schedule->active_runs += change;
    APR_RING_FOREACH(queue, &run->queues, runner_schedule_queue_t, run_link)
    {
        move_queue(schedule, queue, get_level(run));
    }
}

static runner_schedule_queue_t *find_queue(const runner_schedule_entry_t *entry)
{
    runner_schedule_queue_t *queue;

    APR_RING_FOREACH(queue, &entry->run->queues, runner_schedule_queue_t,
                     run_link)
    {
        if (queue->level->host == entry->host) {
            return queue;
        }
    }
    return NULL;
}

static runner_schedule_queue_t *make_queue(runner_schedule_t *schedule)
{
    runner_schedule_queue_t *queue = APR_RING_FIRST(&schedule->free_queues);

    if (queue
        == APR_RING_SENTINEL(&schedule->free_queues, runner_schedule_queue_t,
                             link)) {
        queue = apr_pcalloc(schedule->pool, sizeof(*queue));
        APR_RING_INIT(&queue->entries, runner_schedule_entry_t, link);
        return queue;
    }
    APR_RING_REMOVE(queue, link);
    return queue;
}

/* Removes an entry from its queue, and the queue when it is empty. */
static void leave_queue(runner_schedule_t *schedule,
                        runner_schedule_entry_t *entry)
{
    runner_schedule_queue_t *queue = entry->queue;

    entry->queue = NULL;
    APR_RING_REMOVE(entry, link);
    if (APR_RING_EMPTY(&queue->entries, runner_schedule_entry_t, link)) {
        remove_queue(queue);
        APR_RING_REMOVE(queue, run_link);
        APR_RING_INSERT_TAIL(&schedule->free_queues, queue,
                             runner_schedule_queue_t, link);
    }
}

void runner_schedule_add(runner_schedule_t *schedule,
                         runner_schedule_entry_t *entry)
{
    runner_schedule_queue_t *queue = find_queue(entry);

    if (queue == NULL) {
        queue = make_queue(schedule);
        APR_RING_INSERT_TAIL(&entry->run->queues, queue,
                             runner_schedule_queue_t, run_link);
        insert_queue(schedule, queue, entry->host, get_level(entry->run));
    }
    entry->queue = queue;
    APR_RING_INSERT_TAIL(&queue->entries, entry, runner_schedule_entry_t, link);
}

static bool may_start(const runner_schedule_t *schedule,
                      const host_level_t *level)
{
    int left = schedule->active_max - schedule->active;

    if (level->level == LEVEL_FIRST && schedule->is_kept_for_all) {
        return left > 0;
    }
    if (level->level == LEVEL_FURTHER
        && schedule->kept_max > schedule->active_runs) {
        left -= schedule->kept_max - schedule->active_runs;
    }
    return level->host->active < HOST_FACTOR * left;
}

/* The host with the fewest active transfers; NULL when none waits. */
static host_level_t *find_host(runner_schedule_t *schedule, int level)
{
    int *fewest = &schedule->fewest[level];

    for (; *fewest <= schedule->active_max; (*fewest)++) {
        host_levels_t *hosts = &schedule->hosts[level][*fewest];

        if (!APR_RING_EMPTY(hosts, host_level_t, link)) {
            return APR_RING_FIRST(hosts);
        }
    }
    return NULL;
}

runner_schedule_entry_t *runner_schedule_next(runner_schedule_t *schedule)
{
    for (int i = 0; i < LEVELS; i++) {
        host_level_t *level = find_host(schedule, i);

        if (level != NULL && may_start(schedule, level)) {
            return APR_RING_FIRST(&APR_RING_FIRST(&level->queues)->entries);
        }
    }
    return NULL;
}

void runner_schedule_start(runner_schedule_t *schedule,
                           runner_schedule_entry_t *entry)
{
    runner_schedule_queue_t *queue = entry->queue;

    /* The other runs have their turns first. */
    move_queue(schedule, queue, get_level(entry->run));
    leave_queue(schedule, entry);
    schedule->active++;
    count_run(schedule, entry->run, 1);
    count_host(schedule, entry->host, 1);
}

void runner_schedule_remove(runner_schedule_t *schedule,
                            runner_schedule_entry_t *entry)
{
    if (entry->queue != NULL) {
        leave_queue(schedule, entry);
        return;
    }
    schedule->active--;
    count_run(schedule, entry->run, -1);
    count_host(schedule, entry->host, -1);
}
