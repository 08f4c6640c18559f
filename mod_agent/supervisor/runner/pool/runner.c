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

#include "../protocol/protocol.h"

/* Size of the pipe to a runner: a long start line takes a few writes. */
#define PIPE_BYTES (1024 * 1024)

void agent_runner_init(agent_runner_table_t *table, agent_context_t *context,
                       agent_poll_t *poll)
{
    table->context = context;
    table->poll = poll;
    table->pools = agent_pool_make_all(&table->pool_count, &table->lists,
                                       context);
    APR_RING_INIT(&table->all, agent_runner_t, link);
    APR_RING_INIT(&table->pending, agent_runner_t, pending_link);
    for (int i = 0; i < table->pool_count; i++) {
        APR_RING_INIT(&table->pools[i].runners, agent_runner_t, pool_link);
    }
}

void agent_runner_link(agent_runner_table_t *table, agent_runner_t *runner)
{
    runner->table = table;
    APR_RING_ELEM_INIT(runner, pending_link);
    APR_RING_INSERT_TAIL(&table->all, runner, agent_runner_t, link);
    APR_RING_INSERT_TAIL(&runner->runner_pool->runners, runner, agent_runner_t,
                         pool_link);
    table->count++;
    table->quarantined += runner->max_shared > 0;
}

static void unlink_runner(agent_runner_table_t *table, agent_runner_t *runner)
{
    APR_RING_REMOVE(runner, link);
    APR_RING_REMOVE(runner, pool_link);
    APR_RING_REMOVE(runner, pending_link);
    table->count--;
}

void agent_runner_set_dead(agent_runner_table_t *table, agent_runner_t *runner)
{
    runner->state = AGENT_RUNNER_DEAD;
    table->quarantined -= runner->max_shared > 0;
    agent_runner_touch(runner);
    agent_pool_miss_runner(runner->runner_pool);
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

/* Whether an ordinary runner of the pool serves its other graphs. */
static bool is_served(const agent_runner_pool_t *pool)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        if (runner->state == AGENT_RUNNER_READY && runner->max_shared == 0) {
            return true;
        }
    }
    return false;
}

/* A graph that ends its process again would delay the other graphs, if none is
 * ready: after the pause for many graphs, for as long as it lasts. */
static void say_hello(agent_runner_t *runner)
{
    const agent_pool_config_t *config = runner->runner_pool->config;
    const agent_graph_table_t *graphs = &runner->runner_pool->graphs;
    const char *failed;

    if (is_served(runner->runner_pool)) {
        agent_graphs_retry(graphs);
    }
    else {
        agent_graphs_postpone(graphs);
    }
    failed = agent_graphs_print_failed(graphs, runner->pool);
    runner->is_warned = failed != NULL;
    runner->left_out = agent_graphs_copy_failed(graphs, runner->pool);
    agent_protocol_hello(agent_runner_input(runner), config->application,
                         config->graphs, failed);
}

static agent_runner_t *make_runner(agent_runner_table_t *table,
                                   agent_runner_pool_t *runner_pool,
                                   int max_shared,
                                   int pipes[AGENT_SPAWNER_FDS][2])
{
    agent_runner_t *runner;
    apr_pool_t *pool;

    apr_pool_create(&pool, table->context->pool);
    runner = apr_pcalloc(pool, sizeof(*runner));
    runner->pool = pool;
    runner->runner_pool = runner_pool;
    runner->max_shared = max_shared;
    runner->id = ++table->last_id;
    runner->in.fd = pipes[AGENT_SPAWNER_IN][1];
    runner->out.fd = pipes[AGENT_SPAWNER_OUT][0];
    runner->log_out.fd = pipes[AGENT_SPAWNER_LOG][0];
    fcntl(runner->in.fd, F_SETFL, O_NONBLOCK);
    /* Best effort: fs.pipe-max-size may allow less. */
    fcntl(runner->in.fd, F_SETPIPE_SZ, PIPE_BYTES);
    fcntl(runner->out.fd, F_SETFL, O_NONBLOCK);
    fcntl(runner->log_out.fd, F_SETFL, O_NONBLOCK);
    agent_buffer_init(&runner->input, pool);
    agent_buffer_init(&runner->output, pool);
    agent_buffer_init(&runner->log.text, pool);
    agent_lease_group_init(&runner->group, runner,
                           runner_pool->config->run_timeout);
    runner->group.store_ttl = runner_pool->config->store_ttl;
    runner->reason = "the runner process ended unexpectedly";
    runner->started_at = table->context->now;
    runner->limit_at = table->context->now
        + table->context->timing.ready_timeout;
    runner->ping_at = AGENT_CLOCK_NEVER;
    runner->pong_by = AGENT_CLOCK_NEVER;
    agent_runner_link(table, runner);
    say_hello(runner);
    return runner;
}

/* Before it is started: no runner that executes runs is ever refused. */
static apr_status_t watch_pipes(const agent_runner_table_t *table,
                                agent_runner_t *runner)
{
    apr_status_t rv = agent_poll_add(table->poll, &runner->in);

    if (rv == APR_SUCCESS) {
        rv = agent_poll_add(table->poll, &runner->out);
    }
    return rv == APR_SUCCESS ? agent_poll_add(table->poll, &runner->log_out)
                             : rv;
}

agent_runner_t *agent_runner_start(agent_runner_table_t *table,
                                   agent_runner_pool_t *pool, int max_shared)
{
    int pipes[AGENT_SPAWNER_FDS][2];
    int theirs[AGENT_SPAWNER_FDS];
    agent_runner_t *runner = NULL;
    apr_status_t rv = make_pipes(pipes);

    if (rv == APR_SUCCESS) {
        runner = make_runner(table, pool, max_shared, pipes);
        theirs[AGENT_SPAWNER_IN] = pipes[AGENT_SPAWNER_IN][0];
        theirs[AGENT_SPAWNER_OUT] = pipes[AGENT_SPAWNER_OUT][1];
        theirs[AGENT_SPAWNER_LOG] = pipes[AGENT_SPAWNER_LOG][1];
        rv = watch_pipes(table, runner);
        if (rv == APR_SUCCESS) {
            rv = agent_spawner_spawn(&table->spawner, runner->id, pool->number,
                                     theirs);
        }
        for (int i = 0; i < AGENT_SPAWNER_FDS; i++) {
            close(theirs[i]);
        }
        if (rv != APR_SUCCESS) {
            agent_runner_set_dead(table, runner);
        }
    }
    if (rv != APR_SUCCESS) {
        agent_pool_count_failure(pool, table->context, max_shared);
        agent_report_repeat_of(
            table->context, &pool->report, AGENT_LOG_ERR, "AGT0334", rv,
            "a runner of pool %s could not be started", pool->config->name);
        return NULL;
    }
    return runner;
}

/* ---- ending ---- */

/* The graph for which they are replaced has failed again. */
static void keep_replaced(const agent_runner_pool_t *pool)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &pool->runners, agent_runner_t, pool_link)
    {
        runner->is_replaced = runner->is_replaced && !runner->lacks_graph;
    }
}

/* It ends before it is ready: the graph that it imports is blamed, and named
 * in the log. */
static void blame_graph(agent_context_t *context, const agent_runner_t *runner)
{
    agent_runner_pool_t *pool = runner->runner_pool;
    bool has_failed;

    if (runner->importing == NULL || runner->loss != AGENT_LOSS_COUNTED
        || context->mode != AGENT_MODE_RUNNING) {
        return;
    }
    agent_pool_reset_failed_starts(pool);
    has_failed = agent_graphs_blame(&pool->graphs, runner->importing,
                                    runner->is_warned, runner->reason);
    if (has_failed) {
        keep_replaced(pool);
    }
    agent_report_write(context, AGENT_LOG_ERR, "AGT0376", 0,
                       "runner %d of pool %s ended while it imported "
                       "graph %s (%s)%s",
                       (int)runner->pid, pool->config->name,
                       runner->importing->name, runner->reason,
                       has_failed ? ": the graph is not imported again for "
                                    "some minutes"
                                  : "");
}

void agent_runner_kill(agent_runner_table_t *table, agent_runner_t *runner,
                       agent_loss_t loss, const char *reason)
{
    bool is_starting = runner->state == AGENT_RUNNER_STARTING;

    if (runner->state >= AGENT_RUNNER_KILLED) {
        return;
    }
    runner->state = AGENT_RUNNER_KILLED;
    agent_runner_touch(runner);
    agent_pool_miss_runner(runner->runner_pool);
    /* Nothing is written to it, and it may take long to exit. */
    agent_buffer_consume(&runner->input, agent_buffer_length(&runner->input));
    runner->loss = loss;
    runner->reason = reason;
    if (is_starting) {
        blame_graph(table->context, runner);
    }
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

void agent_runner_free_dead(agent_runner_table_t *table)
{
    agent_runner_t *runner;
    agent_runner_t *next;

    AGENT_RING_EACH_SAFE(runner, next, &table->pending, agent_runner_t,
                         pending_link)
    {
        if (runner->state == AGENT_RUNNER_DEAD) {
            agent_poll_close_watch(&runner->in);
            agent_poll_close_watch(&runner->out);
            agent_poll_close_watch(&runner->log_out);
            agent_graphs_release(runner->set);
            unlink_runner(table, runner);
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
