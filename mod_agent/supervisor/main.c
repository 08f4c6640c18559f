/* SPDX-License-Identifier: Apache-2.0 */
/* From the call to the exit status: set-up, the loop, the end; see
 * supervisor.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <apr_allocator.h>

#include "../core/wake.h"
#include "runner/io.h"
#include "instance.h"

#define EXIT_CONFIG 2
#define TICK        apr_time_from_sec(1)
/* Read in one turn; a socket holds fewer. */
#define MAX_DATAGRAMS 1000
/* Freed memory kept for later; the rest goes back to the system. */
#define KEPT_BYTES ((apr_size_t)1024 * 1024)
/* The way out: after SIGTERM, after the parent's end, and for the spawner. */
#define TERM_PATIENCE   apr_time_from_sec(2)
#define ORPHAN_PATIENCE apr_time_from_msec(600)
#define SPAWNER_MS      250

static apr_interval_time_t or_default(apr_interval_time_t value, int sec)
{
    return value > 0 ? value : apr_time_from_sec(sec);
}

static agent_supervisor_t *make_supervisor(
    const agent_supervisor_config_t *config)
{
    const agent_supervisor_timing_t *timing = &config->timing;
    agent_supervisor_t *sv;
    apr_allocator_t *allocator;
    apr_pool_t *pool;

    /* An allocator of its own: nothing is shared with the parent's pools. */
    apr_allocator_create(&allocator);
    apr_allocator_max_free_set(allocator, KEPT_BYTES);
    apr_pool_create_ex(&pool, NULL, NULL, allocator);
    apr_allocator_owner_set(allocator, pool);
    sv = apr_pcalloc(pool, sizeof(*sv));
    sv->pool = pool;
    sv->config = config;
    sv->parent_pid = getppid();
    sv->now = agent_process_clock();
    sv->timing.ping_interval = or_default(timing->ping_interval, 10);
    sv->timing.ping_timeout = or_default(timing->ping_timeout, 15);
    sv->timing.ready_timeout = or_default(timing->ready_timeout, 30);
    sv->timing.cancel_grace = or_default(timing->cancel_grace, 10);
    sv->timing.recycle_grace = or_default(timing->recycle_grace, 60);
    sv->timing.trial = or_default(timing->trial, 10);
    agent_database_init(sv, &sv->database, agent_operations);
    agent_database_init(sv, &sv->bulk, agent_bulk_operations);
    agent_worker_init(sv);
    agent_lease_init(sv);
    agent_batch_init(sv);
    agent_credit_init(sv);
    agent_release_init(sv);
    agent_notify_init(sv);
    agent_runner_init(sv);
    agent_claim_init(sv);
    agent_start_init(sv);
    agent_webhook_init(sv);
    return sv;
}

/* Signals, descriptors, spawner, user: in this order. 0 or an exit status. */
static int prepare_process(agent_supervisor_t *sv)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGCHLD, 0};
    const agent_supervisor_config_t *config = sv->config;
    const int keep[] = {config->wake_fd, config->life_fd, config->log_fd};
    apr_status_t rv;

    agent_process_reset_signals();
    if (!agent_process_close_fds(keep, 3)) {
        agent_report_write(sv, AGENT_LOG_ERR, "AGT0387",
                           APR_FROM_OS_ERROR(errno),
                           "cannot close the descriptors of the parent: "
                           "neither close_range() nor /proc/self/fd works");
        return EXIT_CONFIG;
    }
    agent_process_name("agent-super");
    srand48((long)getpid() ^ (long)sv->now);
    rv = agent_spawner_start(&sv->spawner, config);
    if (rv != APR_SUCCESS) {
        agent_report_write(sv, AGENT_LOG_ERR, "AGT0303", rv,
                           "cannot open the runner %s or start the spawner",
                           config->runner_path);
        return EXIT_CONFIG;
    }
    rv = agent_process_become(config->uid, config->gid);
    if (rv != APR_SUCCESS) {
        agent_report_write(sv, AGENT_LOG_ERR, "AGT0304", rv,
                           "cannot become user %d, group %d", (int)config->uid,
                           (int)config->gid);
        return EXIT_CONFIG;
    }
    sv->signal_fd = agent_process_signal_fd(signals);
    if (sv->signal_fd < 0 || !agent_process_boot_id(sv->worker.boot_id)) {
        agent_report_write(sv, AGENT_LOG_ERR, "AGT0306",
                           APR_FROM_OS_ERROR(errno),
                           "this system lacks signalfd or /proc");
        return EXIT_CONFIG;
    }
    return 0;
}

/* ---- what wakes the loop ---- */

static void on_signal(agent_supervisor_t *sv, void *baton)
{
    struct signalfd_siginfo info;

    while (read(sv->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGUSR1) {
            agent_drain_begin(sv);
        }
        else if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) {
            agent_drain_leave(sv, TERM_PATIENCE, "told to stop");
        }
        /* SIGHUP goes to the whole group of httpd at a restart; the parent
         * tells us in its own way. SIGCHLD: the spawner's pipe tells more. */
    }
}

static void take_datagram(agent_supervisor_t *sv, const char *datagram)
{
    switch (datagram[0]) {
    case AGENT_WAKE_READY:
        agent_claim_wake(sv);
        break;
    case AGENT_WAKE_CANCEL:
        agent_check_wake(sv);
        break;
    case AGENT_WAKE_CHANGED:
        agent_notify_relay(sv, datagram + 1);
        /* Where a run ended, the next one of its thread may be ready. */
        agent_claim_wake(sv);
        break;
    }
    /* Whatever it was may have ended a run. */
    agent_webhook_hint(sv);
}

static void on_wake(agent_supervisor_t *sv, void *baton)
{
    char datagram[AGENT_WAKE_BYTES + 1];
    ssize_t length = 0;

    /* All that are there: a thousand requests are one claim. */
    for (int i = 0; i < MAX_DATAGRAMS; i++) {
        length = recv(sv->config->wake_fd, datagram, AGENT_WAKE_BYTES,
                      MSG_DONTWAIT);
        if (length <= 0) {
            break;
        }
        datagram[length] = '\0';
        take_datagram(sv, datagram);
    }
    if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) {
        /* The other ends are closed: the poll each second remains. */
        sv->is_wake_lost = true;
    }
}

static void leave_orphaned(agent_supervisor_t *sv)
{
    sv->is_parent_lost = true;
    agent_drain_leave(sv, ORPHAN_PATIENCE, "the parent has ended");
}

static void on_life(agent_supervisor_t *sv, void *baton)
{
    char byte;
    ssize_t got = read(sv->config->life_fd, &byte, 1);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        leave_orphaned(sv);
    }
}

/* Another process may hold the pipe open: one that httpd was starting when it
 * was killed. */
static void check_parent(agent_supervisor_t *sv)
{
    if (sv->config->life_fd >= 0 && !sv->is_parent_lost
        && getppid() != sv->parent_pid) {
        leave_orphaned(sv);
    }
}

static void on_news(agent_supervisor_t *sv, void *baton)
{
    agent_runner_receive_news(sv);
}

static void on_database(agent_supervisor_t *sv, void *baton)
{
    agent_database_ready(sv, baton);
}

static void poll_database(agent_supervisor_t *sv, agent_database_t *database)
{
    if (database->state != AGENT_DATABASE_DOWN) {
        agent_poll_add(sv, agent_database_fd(database), database->events,
                       on_database, database);
    }
}

/* ---- the loop ---- */

static void tick(agent_supervisor_t *sv)
{
    if (sv->tick_at <= sv->now) {
        sv->tick_at = sv->now + TICK;
        check_parent(sv);
        agent_lease_tick(sv);
        agent_runner_tick(sv);
        agent_worker_tick(sv);
    }
    else if (agent_worker_next_tick(sv) <= sv->now) {
        agent_worker_tick(sv);
    }
}

static apr_time_t earlier(apr_time_t a, apr_time_t b)
{
    return a < b ? a : b;
}

static void turn(agent_supervisor_t *sv)
{
    apr_time_t until;

    tick(sv);
    agent_credit_step(sv);
    agent_runner_resume(sv);
    until = earlier(sv->tick_at, agent_worker_next_tick(sv));
    until = earlier(until, agent_runner_replenish(sv));
    until = earlier(until, agent_webhook_step(sv));
    until = earlier(until, agent_database_step(sv, &sv->database));
    until = earlier(until, agent_database_step(sv, &sv->bulk));
    until = earlier(until, agent_drain_step(sv));
    agent_runner_reap(sv);
    if (sv->mode == AGENT_MODE_DONE) {
        return;
    }
    agent_poll_add(sv, sv->signal_fd, POLLIN, on_signal, NULL);
    if (!sv->is_parent_lost) {
        agent_poll_add(sv, sv->config->life_fd, POLLIN, on_life, NULL);
    }
    if (!sv->is_wake_lost) {
        agent_poll_add(sv, sv->config->wake_fd, POLLIN, on_wake, NULL);
    }
    if (!sv->is_spawner_lost) {
        agent_poll_add(sv, sv->spawner.fd, POLLIN, on_news, NULL);
    }
    poll_database(sv, &sv->database);
    poll_database(sv, &sv->bulk);
    agent_runner_poll(sv);
    agent_webhook_poll(sv);
    agent_poll_wait(sv, until);
}

int agent_supervisor_main(const agent_supervisor_config_t *config)
{
    agent_supervisor_t *sv = make_supervisor(config);
    int status = prepare_process(sv);

    if (status == 0) {
        agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0301", 0,
                           "supervisor of host %s started: runners: %d, "
                           "%d slots each",
                           config->node_name, config->runners, config->slots);
        while (sv->mode != AGENT_MODE_DONE) {
            turn(sv);
        }
        agent_webhook_close(sv);
        agent_database_close(sv, &sv->database, AGENT_FAILURE_RETRY);
        agent_database_close(sv, &sv->bulk, AGENT_FAILURE_RETRY);
        agent_spawner_stop(&sv->spawner, SPAWNER_MS);
        status = sv->exit_code;
        agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0302", 0,
                           "supervisor ended");
    }
    apr_pool_destroy(sv->pool);
    return status;
}
