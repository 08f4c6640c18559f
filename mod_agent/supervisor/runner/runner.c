/* SPDX-License-Identifier: Apache-2.0 */
/* The table of runners; see runner.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../../core/backoff.h"

#include "protocol.h"

/* Size of the pipe to a runner: a long start line takes a few writes. */
#define PIPE_BYTES (1024 * 1024)
/* Pauses after runners that failed to start. */
#define FIRST_PAUSE apr_time_from_msec(100)
#define MAX_PAUSE   apr_time_from_sec(5)

void agent_runner_init(agent_runner_table_t *table, agent_context_t *context)
{
    table->context = context;
    APR_RING_INIT(&table->all, agent_runner_t, link);
}

/* ---- counting ---- */

/* Which runners are counted. */
typedef enum count_t {
    COUNT_ALL,
    /* Ordinary ones: not dead; starting or ready; ready. */
    COUNT_ORDINARY,
    COUNT_USEFUL,
    COUNT_READY,
    /* Those for suspects: not dead; starting. */
    COUNT_SUSPECT,
    COUNT_SUSPECT_STARTING
} count_t;

static bool is_counted(const agent_runner_t *runner, count_t what)
{
    switch (what) {
    case COUNT_ORDINARY:
        return runner->state < AGENT_RUNNER_DEAD && runner->max_shared == 0;
    case COUNT_USEFUL:
        return runner->state <= AGENT_RUNNER_READY && runner->max_shared == 0;
    case COUNT_READY:
        return runner->state == AGENT_RUNNER_READY && runner->max_shared == 0;
    case COUNT_SUSPECT:
        return runner->state < AGENT_RUNNER_DEAD && runner->max_shared > 0;
    case COUNT_SUSPECT_STARTING:
        return runner->state == AGENT_RUNNER_STARTING && runner->max_shared > 0;
    default:
        return true;
    }
}

static int count_runners(const agent_runner_table_t *table, count_t what)
{
    agent_runner_t *runner;
    int count = 0;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        count += is_counted(runner, what);
    }
    return count;
}

int agent_runner_free_slots(const agent_runner_table_t *table,
                            const agent_graph_set_t *set)
{
    agent_runner_t *runner;
    int count = 0;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        if (runner->state == AGENT_RUNNER_READY && runner->max_shared == 0
            && runner->set == set && runner->slots > runner->group.active) {
            count += runner->slots - runner->group.active;
        }
    }
    return count;
}

/* Whether the runner can execute the graph; until it is ready, whether it may.
 */
static bool may_execute(const agent_runner_t *runner, int graph)
{
    return runner->set == NULL || runner->set->has[graph];
}

agent_runner_t *agent_runner_least_loaded(const agent_runner_table_t *table,
                                          int graph)
{
    agent_runner_t *runner;
    agent_runner_t *best = NULL;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        if (runner->state == AGENT_RUNNER_READY && runner->max_shared == 0
            && may_execute(runner, graph)
            && runner->group.active < runner->slots
            && (best == NULL || runner->group.active < best->group.active)) {
            best = runner;
        }
    }
    return best;
}

/* Runners for suspects that can be started now; after a failure one at a time,
 * when the pause is over. */
static int count_startable(const agent_runner_table_t *table)
{
    const agent_runner_pause_t *pause = &table->suspects;
    int of_kind = AGENT_RUNNERS_SUSPECT - count_runners(table, COUNT_SUSPECT);
    int of_all = AGENT_RUNNERS_MAX - count_runners(table, COUNT_ALL);
    int count = of_kind < of_all ? of_kind : of_all;

    if (table->context->mode != AGENT_MODE_RUNNING
        || pause->start_at > table->context->now || count <= 0) {
        return 0;
    }
    if (pause->failures > 0) {
        return count_runners(table, COUNT_SUSPECT_STARTING) == 0 ? 1 : 0;
    }
    return count;
}

int agent_runner_free_suspect_runners(const agent_runner_table_t *table)
{
    /* If no ordinary runner starts, those for suspects would not either. */
    return count_runners(table, COUNT_READY) > 0 ? count_startable(table) : 0;
}

/* ---- starting ---- */

static void close_pair(int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

/* in, out, log: [0] is read, [1] is written. */
static apr_status_t make_pipes(int pipes[AGENT_SPAWNER_FDS][2])
{
    for (int i = 0; i < AGENT_SPAWNER_FDS; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0) {
            apr_status_t rv = APR_FROM_OS_ERROR(errno);

            while (i-- > 0) {
                close_pair(pipes[i]);
            }
            return rv;
        }
    }
    return APR_SUCCESS;
}

static agent_runner_t *make_runner(agent_runner_table_t *table,
                                   int pipes[AGENT_SPAWNER_FDS][2])
{
    agent_runner_t *runner;
    apr_pool_t *pool;

    apr_pool_create(&pool, table->context->pool);
    runner = apr_pcalloc(pool, sizeof(*runner));
    runner->pool = pool;
    runner->id = ++table->last_id;
    runner->in_fd = pipes[AGENT_SPAWNER_IN][1];
    runner->out_fd = pipes[AGENT_SPAWNER_OUT][0];
    runner->log_fd = pipes[AGENT_SPAWNER_LOG][0];
    fcntl(runner->in_fd, F_SETFL, O_NONBLOCK);
    /* Best effort: fs.pipe-max-size may allow less. */
    fcntl(runner->in_fd, F_SETPIPE_SZ, PIPE_BYTES);
    fcntl(runner->out_fd, F_SETFL, O_NONBLOCK);
    fcntl(runner->log_fd, F_SETFL, O_NONBLOCK);
    agent_buffer_init(&runner->input, pool);
    agent_buffer_init(&runner->output, pool);
    agent_buffer_init(&runner->log.text, pool);
    agent_lease_group_init(&runner->group, runner);
    runner->reason = "the runner process ended unexpectedly";
    runner->started_at = table->context->now;
    runner->limit_at = table->context->now
        + table->context->timing.ready_timeout;
    runner->ping_at = AGENT_CLOCK_NEVER;
    runner->pong_by = AGENT_CLOCK_NEVER;
    APR_RING_INSERT_TAIL(&table->all, runner, agent_runner_t, link);
    agent_protocol_hello(&runner->input, table->context->config->graphs);
    return runner;
}

static agent_runner_pause_t *find_pause(agent_runner_table_t *table,
                                        int max_shared)
{
    return max_shared > 0 ? &table->suspects : &table->ordinary;
}

void agent_runner_count_failure(agent_runner_table_t *table, int max_shared)
{
    agent_runner_pause_t *pause = find_pause(table, max_shared);

    pause->start_at = table->context->now
        + agent_backoff_delay(pause->failures++, FIRST_PAUSE, MAX_PAUSE);
    if (pause->failures > 3) {
        agent_report_repeat(table->context, AGENT_LOG_ERR, "AGT0337", 0,
                            "%d runners in a row ended right after their "
                            "start",
                            pause->failures);
    }
}

void agent_runner_count_success(agent_runner_table_t *table, int max_shared)
{
    find_pause(table, max_shared)->failures = 0;
}

/* NULL when it could not be started, which is logged. */
static agent_runner_t *start_runner(agent_runner_table_t *table, int max_shared)
{
    int pipes[AGENT_SPAWNER_FDS][2];
    int theirs[AGENT_SPAWNER_FDS];
    agent_runner_t *runner = NULL;
    apr_status_t rv = make_pipes(pipes);

    if (rv == APR_SUCCESS) {
        runner = make_runner(table, pipes);
        runner->max_shared = max_shared;
        theirs[AGENT_SPAWNER_IN] = pipes[AGENT_SPAWNER_IN][0];
        theirs[AGENT_SPAWNER_OUT] = pipes[AGENT_SPAWNER_OUT][1];
        theirs[AGENT_SPAWNER_LOG] = pipes[AGENT_SPAWNER_LOG][1];
        rv = agent_spawner_spawn(&table->spawner, runner->id, theirs);
        for (int i = 0; i < AGENT_SPAWNER_FDS; i++) {
            close(theirs[i]);
        }
        if (rv != APR_SUCCESS) {
            runner->state = AGENT_RUNNER_DEAD;
        }
    }
    if (rv != APR_SUCCESS) {
        agent_runner_count_failure(table, max_shared);
        agent_report_repeat(table->context, AGENT_LOG_ERR, "AGT0334", rv,
                            "a runner could not be started");
        return NULL;
    }
    return runner;
}

agent_runner_t *agent_runner_for_suspect(agent_runner_table_t *table,
                                         int max_shared, int graph)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        if (runner->max_shared == max_shared
            && runner->state <= AGENT_RUNNER_READY && may_execute(runner, graph)
            && runner->group.active < max_shared
            && (runner->slots == 0 || runner->group.active < runner->slots)) {
            return runner;
        }
    }
    return count_startable(table) > 0 ? start_runner(table, max_shared) : NULL;
}

/* ---- ending ---- */

void agent_runner_kill(agent_runner_table_t *table, agent_runner_t *runner,
                       agent_loss_t loss, const char *reason)
{
    if (runner->state >= AGENT_RUNNER_KILLED) {
        return;
    }
    runner->state = AGENT_RUNNER_KILLED;
    /* Nothing is written to it, and it may take long to exit. */
    agent_buffer_consume(&runner->input, agent_buffer_length(&runner->input));
    runner->loss = loss;
    runner->reason = reason;
    runner->limit_at = table->context->now + AGENT_RUNNER_KILL_TIMEOUT;
    agent_spawner_kill(&table->spawner, runner->id, SIGKILL);
}

void agent_runner_breach(agent_runner_table_t *table, agent_runner_t *runner,
                         const char *what)
{
    agent_report_write(table->context, AGENT_LOG_ERR, "AGT0332", 0,
                       "runner %d broke the protocol (%s): it is killed, its "
                       "%d runs are released",
                       (int)runner->pid, what, runner->group.active);
    agent_runner_kill(table, runner, AGENT_LOSS_COUNTED,
                      "the runner broke the protocol");
}

/* Kills the ordinary runner that began to leave first, unless another one was
 * killed and is about to end. At most AgentRunners may be leaving, since each
 * takes memory. */
static void make_room(agent_runner_table_t *table)
{
    agent_runner_t *first = NULL;
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        if (runner->max_shared > 0) {
            continue;
        }
        if (runner->state == AGENT_RUNNER_KILLED) {
            return;
        }
        if (runner->state == AGENT_RUNNER_LEAVING
            && (first == NULL || runner->limit_at < first->limit_at)) {
            first = runner;
        }
    }
    if (first != NULL) {
        agent_runner_kill(table, first, AGENT_LOSS_UNCOUNTED,
                          "the runner was replaced");
    }
}

apr_time_t agent_runner_replenish(agent_runner_table_t *table)
{
    int missing = table->context->config->runners
        - count_runners(table, COUNT_USEFUL);
    int room;

    if (table->context->mode != AGENT_MODE_RUNNING || missing <= 0
        || count_runners(table, COUNT_ALL) >= AGENT_RUNNERS_MAX) {
        return AGENT_CLOCK_NEVER;
    }
    if (table->ordinary.start_at > table->context->now) {
        return table->ordinary.start_at;
    }
    room = 2 * table->context->config->runners
        - count_runners(table, COUNT_ORDINARY);
    if (room <= 0) {
        make_room(table);
        return AGENT_CLOCK_NEVER;
    }
    while (missing-- > 0 && room-- > 0
           && table->ordinary.start_at <= table->context->now) {
        start_runner(table, 0);
    }
    return table->context->now;
}

void agent_runner_signal_all(agent_runner_table_t *table, int number)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        if (runner->state < AGENT_RUNNER_DEAD) {
            agent_spawner_kill(&table->spawner, runner->id, number);
        }
        /* It could not answer while it was stopped. */
        if (runner->pong_by != AGENT_CLOCK_NEVER) {
            runner->pong_by = table->context->now
                + table->context->timing.ping_timeout;
        }
    }
}

static void close_pipes(agent_runner_t *runner)
{
    int *fds[] = {&runner->in_fd, &runner->out_fd, &runner->log_fd};

    for (int i = 0; i < 3; i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
            *fds[i] = -1;
        }
    }
}

void agent_runner_free_dead(agent_runner_table_t *table)
{
    agent_runner_t *runner;
    agent_runner_t *next;

    AGENT_RING_EACH_SAFE(runner, next, &table->all, agent_runner_t, link)
    {
        if (runner->state == AGENT_RUNNER_DEAD) {
            close_pipes(runner);
            agent_graphs_release(runner->set);
            APR_RING_REMOVE(runner, link);
            apr_pool_destroy(runner->pool);
        }
    }
}

agent_runner_t *agent_runner_find(const agent_runner_table_t *table,
                                  apr_uint32_t id)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &table->all, agent_runner_t, link)
    {
        if (runner->id == id) {
            return runner;
        }
    }
    return NULL;
}

bool agent_runner_may_answer(const agent_runner_table_t *table,
                             const agent_runner_t *runner)
{
    return !table->is_full && !runner->is_held && !table->is_stopped;
}
