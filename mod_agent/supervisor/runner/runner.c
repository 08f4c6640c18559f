/* SPDX-License-Identifier: Apache-2.0 */
/* The life of runner processes; see runner.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runner.h"
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include <apr_strings.h>

#include "../instance.h"

/* A runner that ends sooner than that has failed to start. */
#define SHORT_LIFE apr_time_from_sec(1)
/* Of the pipe to it: a long start line is read in a few turns of its loop. */
#define PIPE_BYTES (1024 * 1024)
#define FIRST_WAIT apr_time_from_msec(100)
#define MAX_WAIT   apr_time_from_sec(5)
/* For a killed process to disappear before its runs are given back anyway. */
#define KILL_PATIENCE apr_time_from_sec(5)

void agent_runner_init(agent_supervisor_t *sv)
{
    APR_RING_INIT(&sv->runners.all, agent_runner_t, link);
}

/* ---- counting ---- */

/* All that have not ended; the ordinary ones; of these those that take runs, or
 * will, and those that take them now; those for suspects; of these those that
 * are not ready yet. */
typedef enum count_t {
    COUNT_ALL,
    COUNT_ORDINARY,
    COUNT_USEFUL,
    COUNT_READY,
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

static int count_runners(const agent_supervisor_t *sv, count_t what)
{
    agent_runner_t *runner;
    int count = 0;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        count += is_counted(runner, what);
    }
    return count;
}

int agent_runner_free_slots(const agent_supervisor_t *sv)
{
    agent_runner_t *runner;
    int count = 0;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        if (runner->state == AGENT_RUNNER_READY && runner->max_shared == 0
            && runner->slots > runner->active) {
            count += runner->slots - runner->active;
        }
    }
    return count;
}

agent_runner_t *agent_runner_least_loaded(const agent_supervisor_t *sv)
{
    agent_runner_t *runner;
    agent_runner_t *best = NULL;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        if (runner->state == AGENT_RUNNER_READY && runner->max_shared == 0
            && runner->active < runner->slots
            && (best == NULL || runner->active < best->active)) {
            best = runner;
        }
    }
    return best;
}

/* Runners for suspects that can still be started: after a failure one, when the
 * pause is over. */
static int count_startable(const agent_supervisor_t *sv)
{
    const agent_back_off_t *back_off = &sv->runners.suspects;
    int own = AGENT_RUNNERS_SUSPECT - count_runners(sv, COUNT_SUSPECT);
    int all = AGENT_RUNNERS_MAX - count_runners(sv, COUNT_ALL);
    int count = own < all ? own : all;

    if (sv->mode != AGENT_MODE_RUNNING || back_off->start_at > sv->now
        || count <= 0) {
        return 0;
    }
    if (back_off->failures > 0) {
        return count_runners(sv, COUNT_SUSPECT_STARTING) == 0 ? 1 : 0;
    }
    return count;
}

int agent_runner_free_suspect_runners(const agent_supervisor_t *sv)
{
    /* Where none comes up at all, those for suspects would not either. */
    return count_runners(sv, COUNT_READY) > 0 ? count_startable(sv) : 0;
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

static agent_runner_t *make_runner(agent_supervisor_t *sv,
                                   int pipes[AGENT_SPAWNER_FDS][2])
{
    agent_runner_t *runner;
    apr_pool_t *pool;

    apr_pool_create(&pool, sv->pool);
    runner = apr_pcalloc(pool, sizeof(*runner));
    runner->pool = pool;
    runner->id = ++sv->runners.last_id;
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
    APR_RING_INIT(&runner->leases, agent_lease_t, link);
    runner->reason = "the runner process ended unexpectedly";
    runner->started_at = sv->now;
    runner->limit_at = sv->now + sv->timing.ready_timeout;
    runner->ping_at = AGENT_NEVER;
    runner->pong_by = AGENT_NEVER;
    APR_RING_INSERT_TAIL(&sv->runners.all, runner, agent_runner_t, link);
    agent_protocol_hello(&runner->input, sv->config->graphs);
    return runner;
}

static agent_back_off_t *find_back_off(agent_supervisor_t *sv, int max_shared)
{
    return max_shared > 0 ? &sv->runners.suspects : &sv->runners.ordinary;
}

/* A start that failed, or a life that was too short: wait longer each time. */
static void count_failure(agent_supervisor_t *sv, int max_shared)
{
    agent_back_off_t *back_off = find_back_off(sv, max_shared);
    apr_interval_time_t wait = FIRST_WAIT;

    for (int i = 0; i < back_off->failures && wait < MAX_WAIT; i++) {
        wait *= 2;
    }
    back_off->failures++;
    back_off->start_at = sv->now + (wait < MAX_WAIT ? wait : MAX_WAIT);
    if (back_off->failures > 3) {
        agent_report_repeat(sv, AGENT_LOG_ERR, "AGT0337", 0,
                            "%d runners in a row ended right after their "
                            "start",
                            back_off->failures);
    }
}

/* NULL when it could not be started. */
static agent_runner_t *start_runner(agent_supervisor_t *sv, int max_shared)
{
    int pipes[AGENT_SPAWNER_FDS][2];
    int theirs[AGENT_SPAWNER_FDS];
    agent_runner_t *runner = NULL;
    apr_status_t rv = make_pipes(pipes);

    if (rv == APR_SUCCESS) {
        runner = make_runner(sv, pipes);
        runner->max_shared = max_shared;
        theirs[AGENT_SPAWNER_IN] = pipes[AGENT_SPAWNER_IN][0];
        theirs[AGENT_SPAWNER_OUT] = pipes[AGENT_SPAWNER_OUT][1];
        theirs[AGENT_SPAWNER_LOG] = pipes[AGENT_SPAWNER_LOG][1];
        rv = agent_spawner_spawn(&sv->spawner, runner->id, theirs);
        for (int i = 0; i < AGENT_SPAWNER_FDS; i++) {
            close(theirs[i]);
        }
        if (rv != APR_SUCCESS) {
            runner->state = AGENT_RUNNER_DEAD;
        }
    }
    if (rv != APR_SUCCESS) {
        count_failure(sv, max_shared);
        agent_report_repeat(sv, AGENT_LOG_ERR, "AGT0334", rv,
                            "a runner could not be started");
        return NULL;
    }
    return runner;
}

agent_runner_t *agent_runner_for_suspect(agent_supervisor_t *sv, int max_shared)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        if (runner->max_shared == max_shared
            && runner->state <= AGENT_RUNNER_READY
            && runner->active < max_shared
            && (runner->slots == 0 || runner->active < runner->slots)) {
            return runner;
        }
    }
    return count_startable(sv) > 0 ? start_runner(sv, max_shared) : NULL;
}

apr_time_t agent_runner_replenish(agent_supervisor_t *sv)
{
    int missing = sv->config->runners - count_runners(sv, COUNT_USEFUL);
    int room;

    if (sv->mode != AGENT_MODE_RUNNING || missing <= 0
        || count_runners(sv, COUNT_ALL) >= AGENT_RUNNERS_MAX) {
        return AGENT_NEVER;
    }
    if (sv->runners.ordinary.start_at > sv->now) {
        return sv->runners.ordinary.start_at;
    }
    room = 2 * sv->config->runners - count_runners(sv, COUNT_ORDINARY);
    if (room <= 0) {
        agent_runner_make_room(sv);
        return AGENT_NEVER;
    }
    while (missing-- > 0 && room-- > 0
           && sv->runners.ordinary.start_at <= sv->now) {
        start_runner(sv, 0);
    }
    return sv->now;
}

/* ---- ending ---- */

void agent_runner_kill(agent_supervisor_t *sv, agent_runner_t *runner,
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
    runner->limit_at = sv->now + KILL_PATIENCE;
    agent_spawner_kill(&sv->spawner, runner->id, SIGKILL);
}

void agent_runner_breach(agent_supervisor_t *sv, agent_runner_t *runner,
                         const char *what)
{
    agent_report_write(sv, AGENT_LOG_ERR, "AGT0332", 0,
                       "runner %d broke the protocol (%s): it is killed, its "
                       "%d runs are given back",
                       (int)runner->pid, what, runner->active);
    agent_runner_kill(sv, runner, AGENT_LOSS_COUNTED,
                      "the runner broke the protocol");
}

/* Runs that it was given, whatever has become of them on our side: each may be
 * what it died of. */
static int count_started(const agent_runner_t *runner)
{
    const agent_lease_t *lease;
    int count = 0;

    AGENT_RING_EACH(lease, &runner->leases, agent_lease_t, link)
    {
        count += lease->is_started;
    }
    return count;
}

static void release_lost(agent_supervisor_t *sv, const agent_runner_t *runner,
                         agent_lease_t *lease, int suspects)
{
    bool is_suspect = runner->loss == AGENT_LOSS_COUNTED && lease->is_started
        && lease->cause != AGENT_CAUSE_DRAIN;

    if (is_suspect && suspects > 1) {
        lease->next_max_shared = (suspects + 3) / 4;
    }
    agent_lease_release(sv, lease, is_suspect && suspects == 1, runner->reason);
}

void agent_runner_give_back(agent_supervisor_t *sv, agent_runner_t *runner)
{
    int suspects = count_started(runner);

    if (runner->loss == AGENT_LOSS_COUNTED && suspects > 1) {
        agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0374", 0,
                           "runner %d ended with %d runs: they are tried "
                           "again, at most %d together",
                           (int)runner->pid, suspects, (suspects + 3) / 4);
    }
    while (!APR_RING_EMPTY(&runner->leases, agent_lease_t, link)) {
        agent_lease_t *lease = APR_RING_FIRST(&runner->leases);

        if (lease->state != AGENT_LEASE_HELD) {
            /* Its fate is decided. */
        }
        else if (runner->loss == AGENT_LOSS_FORGET) {
            agent_lease_set_state(sv, lease, AGENT_LEASE_GONE);
        }
        else if (lease->cause == AGENT_CAUSE_DEADLINE) {
            agent_lease_time_out(sv, lease);
        }
        else {
            release_lost(sv, runner, lease, suspects);
        }
        agent_lease_detach(sv, lease);
    }
}

void agent_runner_kill_all(agent_supervisor_t *sv, agent_loss_t loss,
                           const char *reason)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        agent_runner_kill(sv, runner, loss, reason);
        runner->loss = loss;
        runner->reason = reason;
        agent_runner_give_back(sv, runner);
    }
}

static void describe_status(char *text, size_t size, int status)
{
    if (WIFSIGNALED(status)) {
        apr_snprintf(text, size, "signal %d", WTERMSIG(status));
    }
    else {
        apr_snprintf(text, size, "exit status %d", WEXITSTATUS(status));
    }
}

/*
 * Whether others are started later because of it. A runner for suspects is
 * expected to die of its runs, soon or late; what counts is whether it came to
 * execute one: a run that was not begun is given back uncounted, and would be
 * claimed for a new runner without a pause.
 */
static void judge_life(agent_supervisor_t *sv, const agent_runner_t *runner)
{
    bool is_guiltless = runner->max_shared > 0 && runner->is_used;

    if (runner->slots > 0 && sv->now - runner->started_at >= SHORT_LIFE) {
        find_back_off(sv, runner->max_shared)->failures = 0;
    }
    else if (runner->loss == AGENT_LOSS_COUNTED && !is_guiltless) {
        count_failure(sv, runner->max_shared);
    }
}

static void end_runner(agent_supervisor_t *sv, agent_runner_t *runner,
                       int status)
{
    bool wanted = runner->loss != AGENT_LOSS_COUNTED || runner->max_shared > 0;
    char how[64];

    if (runner->state == AGENT_RUNNER_DEAD) {
        return;
    }
    /* It may have said `end` before it ended. */
    agent_runner_read_rest(sv, runner);
    describe_status(how, sizeof(how), status);
    agent_report_write(sv, wanted ? AGENT_LOG_INFO : AGENT_LOG_WARNING,
                       "AGT0331", 0, "runner %d ended (%s) with %d runs",
                       (int)runner->pid, how, runner->active);
    agent_runner_give_back(sv, runner);
    runner->state = AGENT_RUNNER_DEAD;
    judge_life(sv, runner);
}

void agent_runner_reap(agent_supervisor_t *sv)
{
    agent_runner_t *runner;
    agent_runner_t *next;

    AGENT_RING_EACH_SAFE(runner, next, &sv->runners.all, agent_runner_t, link)
    {
        if (runner->state == AGENT_RUNNER_DEAD) {
            agent_runner_close(runner);
            APR_RING_REMOVE(runner, link);
            apr_pool_destroy(runner->pool);
        }
    }
}

static agent_runner_t *find_runner(agent_supervisor_t *sv, apr_uint32_t id)
{
    agent_runner_t *runner;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        if (runner->id == id) {
            return runner;
        }
    }
    return NULL;
}

void agent_runner_receive_news(agent_supervisor_t *sv)
{
    for (;;) {
        apr_uint32_t id = 0;
        int value = 0;
        agent_spawner_news_t news = agent_spawner_receive(&sv->spawner, &id,
                                                          &value);
        agent_runner_t *runner = find_runner(sv, id);

        if (news == AGENT_SPAWNER_NOTHING) {
            return;
        }
        if (news == AGENT_SPAWNER_LOST) {
            agent_drain_spawner_lost(sv);
            return;
        }
        if (runner != NULL && news == AGENT_SPAWNER_STARTED) {
            runner->pid = (pid_t)value;
        }
        else if (runner != NULL && news == AGENT_SPAWNER_EXITED) {
            end_runner(sv, runner, value);
        }
        else if (runner != NULL && news == AGENT_SPAWNER_REFUSED) {
            agent_report_repeat(sv, AGENT_LOG_ERR, "AGT0336",
                                APR_FROM_OS_ERROR(value),
                                "the spawner could not start a runner");
            runner->loss = AGENT_LOSS_UNCOUNTED;
            agent_runner_give_back(sv, runner);
            runner->state = AGENT_RUNNER_DEAD;
            count_failure(sv, runner->max_shared);
        }
    }
}
