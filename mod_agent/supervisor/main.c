/* SPDX-License-Identifier: Apache-2.0 */
/* The process: its set-up, the loop, its exit status; see supervisor.h. */
#include "supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "../core/wake.h"
#include "base/order.h"
#include "instance.h"
#include "lease/batch_move.h"
#include "process/process.h"
#include "runner/deadline.h"
#include "runner/exit.h"
#include "runner/idle.h"
#include "runner/io/io.h"
#include "runner/pool/slots.h"
#include "runner/quarantine.h"
#include "runner/recycle.h"
#include "runner/watch.h"
#include "webhook/loop.h"

#define EXIT_CONFIG 2
#define TICK        apr_time_from_sec(1)
/* Datagrams read in one iteration; a socket holds fewer. */
#define MAX_DATAGRAMS 1000
/* For the final writes after a signal, the end of the parent (also in a stop of
 * httpd that is not graceful), that of the spawner. Without them the attempts
 * of runs count, and their last output is lost. */
#define TERM_TIMEOUT    apr_time_from_sec(2)
#define ORPHAN_TIMEOUT  apr_time_from_sec(2)
#define SPAWNER_TIMEOUT apr_time_from_sec(1)
/* Time for the spawner to end. */
#define SPAWNER_STOP_MS 250

/* The spawner then kills fewer of the processes that runners leave. */
static void warn_without_marks(const agent_supervisor_t *sv)
{
    if (!sv->runners.spawner.can_mark) {
        agent_report_write(sv->context, AGENT_LOG_WARNING, "AGT0389", 0,
                           "processes of runners cannot be marked: a hard "
                           "limit of resident memory or of file locks is set");
    }
}

/* Signals, descriptors, spawner, user: in this order. Returns 0 or an exit
 * status. */
static int prepare_process(agent_supervisor_t *sv)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGCHLD, 0};
    const agent_supervisor_config_t *config = sv->context->config;
    const int keep[] = {config->wake_fd, config->life_fd, config->log_fd};
    const char *path = NULL;
    apr_status_t rv;

    agent_process_reset_signals();
    if (!agent_process_close_fds(keep, 3)) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0387",
                           APR_FROM_OS_ERROR(errno),
                           "cannot close the descriptors of the parent: "
                           "neither close_range() nor /proc/self/fd works");
        return EXIT_CONFIG;
    }
    agent_process_name("agent-super");
    srand48((long)getpid() ^ (long)sv->context->now);
    rv = agent_spawner_start(&sv->runners.spawner, config, &path);
    if (rv != APR_SUCCESS) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0303", rv,
                           "cannot %s%s",
                           path != NULL ? "open " : "start the spawner",
                           path != NULL ? path : "");
        return EXIT_CONFIG;
    }
    warn_without_marks(sv);
    rv = agent_process_become(config->uid, config->gid);
    if (rv != APR_SUCCESS) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0304", rv,
                           "cannot become user %d, group %d", (int)config->uid,
                           (int)config->gid);
        return EXIT_CONFIG;
    }
    sv->signal_fd = agent_process_signal_fd(signals);
    if (sv->signal_fd < 0 || !agent_poll_open(&sv->poll)
        || !agent_process_boot_id(sv->worker.boot_id)) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0306",
                           APR_FROM_OS_ERROR(errno),
                           "this system lacks signalfd, epoll or /proc");
        return EXIT_CONFIG;
    }
    return 0;
}

/* ---- events ---- */

static void on_signal(void *part, void *item)
{
    agent_supervisor_t *sv = part;
    struct signalfd_siginfo info;

    while (read(sv->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGUSR1) {
            agent_shutdown_drain(&sv->shutdown);
        }
        else if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) {
            agent_shutdown_stop(&sv->shutdown, TERM_TIMEOUT, "a signal");
        }
        /* Ignored: SIGHUP, which a restart sends to the whole group of httpd
         * (the parent sends SIGUSR1), and SIGCHLD (the spawner's socket reports
         * exits). */
    }
}

/* The ids that follow that of the deployment: "" for none. */
static const char *skip_deployment(const char *ids)
{
    return strnlen(ids, AGENT_UUID_SIZE) < AGENT_UUID_SIZE
        ? ""
        : ids + AGENT_UUID_SIZE;
}

static void take_datagram(agent_supervisor_t *sv, const char *datagram)
{
    switch (datagram[0]) {
    case AGENT_WAKE_READY:
        agent_pools_claim_for(sv->runners.pools, sv->runners.pool_count,
                              datagram + 1);
        break;
    case AGENT_WAKE_CANCEL:
        agent_schedule_check(&sv->schedule);
        break;
    case AGENT_WAKE_CHANGED:
        agent_notify_relay(&sv->notify, skip_deployment(datagram + 1));
        /* If a run ended, the next one of its thread may be ready. */
        agent_pools_claim_for(sv->runners.pools, sv->runners.pool_count,
                              datagram + 1);
        break;
    }
    /* A run may have ended, with a webhook. */
    agent_schedule_webhooks(&sv->schedule);
}

static void on_wake(void *part, void *item)
{
    agent_supervisor_t *sv = part;
    char datagram[AGENT_WAKE_BYTES + 1];
    ssize_t length = 0;
    int count;

    /* Reads all that have arrived: a thousand requests make one claim. */
    for (count = 0; count < MAX_DATAGRAMS; count++) {
        length = recv(sv->context->config->wake_fd, datagram, AGENT_WAKE_BYTES,
                      MSG_DONTWAIT);
        if (length <= 0) {
            break;
        }
        datagram[length] = '\0';
        take_datagram(sv, datagram);
    }
    if (count >= AGENT_WAKE_MANY) {
        /* The socket may have been full: those of other deployments, or
         * cancellations, may be lost. */
        agent_schedule_claim(&sv->schedule);
        agent_schedule_check(&sv->schedule);
    }
    if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) {
        /* The other ends are closed: runs are found by the claims of each
         * second. */
        agent_poll_set(&sv->poll, &sv->wake, 0);
    }
}

static void stop_orphaned(agent_supervisor_t *sv)
{
    sv->is_parent_lost = true;
    agent_poll_set(&sv->poll, &sv->life, 0);
    agent_shutdown_stop(&sv->shutdown, ORPHAN_TIMEOUT, "the parent has ended");
}

static void on_life(void *part, void *item)
{
    agent_supervisor_t *sv = part;
    char byte;
    ssize_t got = read(sv->context->config->life_fd, &byte, 1);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        stop_orphaned(sv);
    }
}

/* The life pipe may stay open after the parent was killed: in a process that
 * httpd was starting at that moment. */
static void check_parent(agent_supervisor_t *sv)
{
    if (sv->context->config->life_fd >= 0 && !sv->is_parent_lost
        && getppid() != sv->parent_pid) {
        stop_orphaned(sv);
    }
}

static void lose_spawner(agent_supervisor_t *sv)
{
    if (sv->context->mode < AGENT_MODE_STOPPING) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0305", 0,
                           "the spawner process has ended: this supervisor "
                           "ends too, to be started again");
        sv->exit_code = 1;
    }
    agent_poll_set(&sv->poll, &sv->updates, 0);
    agent_shutdown_stop(&sv->shutdown, SPAWNER_TIMEOUT,
                        "the spawner has ended");
}

static void on_spawner(void *part, void *item)
{
    agent_supervisor_t *sv = part;

    if (!agent_runner_exit_take_updates(&sv->io)) {
        lose_spawner(sv);
    }
}

static apr_status_t watch_fd(agent_supervisor_t *sv, agent_poll_watch_t *watch,
                             int fd, agent_poll_handler_t handler)
{
    *watch = (agent_poll_watch_t){.fd = fd, .handler = handler, .part = sv};
    return agent_poll_set(&sv->poll, watch, EPOLLIN);
}

/* Waits for the descriptors that this process has from its start to its end,
 * and without which it would hang. */
static void watch_process(agent_supervisor_t *sv)
{
    const agent_supervisor_config_t *config = sv->context->config;
    apr_status_t rv = watch_fd(sv, &sv->signals, sv->signal_fd, on_signal);

    if (rv == APR_SUCCESS) {
        rv = watch_fd(sv, &sv->life, config->life_fd, on_life);
    }
    if (rv == APR_SUCCESS) {
        rv = watch_fd(sv, &sv->wake, config->wake_fd, on_wake);
    }
    if (rv == APR_SUCCESS) {
        rv = watch_fd(sv, &sv->updates, sv->runners.spawner.fd, on_spawner);
    }
    if (rv != APR_SUCCESS) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0368", rv,
                           "the kernel refuses to watch a descriptor: this "
                           "supervisor ends, to be started again");
        sv->exit_code = 1;
        agent_shutdown_stop(&sv->shutdown, SPAWNER_TIMEOUT,
                            "a descriptor cannot be watched");
    }
}

/* ---- the loop ---- */

static void tick(agent_supervisor_t *sv)
{
    if (sv->tick_at <= sv->context->now) {
        sv->tick_at = sv->context->now + TICK;
        check_parent(sv);
        agent_runner_deadline_tick(&sv->runners, &sv->runs);
        agent_runner_watch_tick(&sv->runners, &sv->runs);
        agent_runner_quarantine_tick(&sv->runners, &sv->runs);
        agent_runner_recycle_tick(&sv->runners, &sv->runs);
        agent_runner_idle_tick(&sv->runners, &sv->runs);
        agent_worker_tick(&sv->worker);
    }
    else if (agent_worker_next_tick(&sv->worker) <= sv->context->now) {
        agent_worker_tick(&sv->worker);
    }
}

static void iterate(agent_supervisor_t *sv)
{
    apr_time_t until;

    tick(sv);
    until = agent_credit_step(&sv->runs.credits);
    agent_runner_io_resume(&sv->io);
    agent_runner_io_poll(&sv->io);
    until = AGENT_MIN(until, sv->tick_at);
    until = AGENT_MIN(until, agent_worker_next_tick(&sv->worker));
    until = AGENT_MIN(until, agent_slots_replenish(&sv->runners));
    until = AGENT_MIN(until, agent_webhook_loop_step(&sv->deliveries));
    until = AGENT_MIN(until, agent_batch_move_step(&sv->runs.batches));
    until = AGENT_MIN(until, agent_database_step(&sv->control));
    until = AGENT_MIN(until, agent_database_step(&sv->bulk));
    until = AGENT_MIN(until, agent_database_step(&sv->output));
    until = AGENT_MIN(until, agent_shutdown_step(&sv->shutdown));
    agent_runner_free_dead(&sv->runners);
    if (sv->context->mode == AGENT_MODE_DONE) {
        return;
    }
    /* The statements above may have added to the input of runners; if their
     * pipes took it, more statements may be due. */
    if (agent_runner_io_poll(&sv->io)) {
        until = sv->context->now;
    }
    agent_poll_wait(&sv->poll, until);
}

int agent_supervisor_main(const agent_supervisor_config_t *config)
{
    agent_supervisor_t *sv = agent_instance_make(config);
    int status = prepare_process(sv);

    if (status == 0) {
        agent_report_write(sv->context, AGENT_LOG_NOTICE, "AGT0301", 0,
                           "supervisor of host %s started: pools of runners: "
                           "%d",
                           config->node_name, config->pool_count);
        watch_process(sv);
        while (sv->context->mode != AGENT_MODE_DONE) {
            iterate(sv);
        }
        agent_webhook_loop_close(&sv->deliveries);
        agent_database_close(&sv->control, AGENT_FAILURE_RETRY);
        agent_database_close(&sv->bulk, AGENT_FAILURE_RETRY);
        agent_database_close(&sv->output, AGENT_FAILURE_RETRY);
        agent_spawner_stop(&sv->runners.spawner, SPAWNER_STOP_MS);
        agent_poll_close(&sv->poll);
        status = sv->exit_code;
        agent_report_write(sv->context, AGENT_LOG_NOTICE, "AGT0302", 0,
                           "supervisor ended");
    }
    apr_pool_destroy(sv->context->pool);
    return status;
}
