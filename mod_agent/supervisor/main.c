/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up, the loop, and the exit status; see supervisor.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <apr_allocator.h>

#include "../core/wake.h"
#include "instance.h"
#include "process/process.h"
#include "runner/deadline.h"
#include "runner/exit.h"
#include "runner/io.h"
#include "runner/trial.h"
#include "runner/watch.h"
#include "statement/operations.h"
#include "webhook/loop.h"

#define EXIT_CONFIG 2
#define TICK        apr_time_from_sec(1)
/* Datagrams read in one turn; a socket holds fewer. */
#define MAX_DATAGRAMS 1000
/* Freed memory kept for later; the rest goes back to the system. */
#define KEPT_BYTES ((apr_size_t)1024 * 1024)
/* Time to leave: after SIGTERM, after the end of the parent, and for the
 * spawner. */
#define TERM_TIMEOUT   apr_time_from_sec(2)
#define ORPHAN_TIMEOUT apr_time_from_msec(600)
#define SPAWNER_MS     250

static void set_default(apr_interval_time_t *value, apr_interval_time_t usual)
{
    if (*value <= 0) {
        *value = usual;
    }
}

static void set_timing(agent_supervisor_timing_t *timing,
                       apr_interval_time_t lease)
{
    set_default(&timing->ping_interval, apr_time_from_sec(10));
    set_default(&timing->ping_timeout, apr_time_from_sec(15));
    set_default(&timing->ready_timeout, apr_time_from_sec(30));
    set_default(&timing->cancel_grace, apr_time_from_sec(10));
    set_default(&timing->recycle_grace, apr_time_from_sec(60));
    set_default(&timing->trial, apr_time_from_sec(10));
    set_default(&timing->renew, lease / 4);
    set_default(&timing->stop, lease * 13 / 20);
    set_default(&timing->kill, lease);
    set_default(&timing->statement, lease / 4);
    set_default(&timing->credit, apr_time_from_sec(10));
}

static agent_context_t *make_context(const agent_supervisor_config_t *config)
{
    agent_context_t *context;
    apr_allocator_t *allocator;
    apr_pool_t *pool;

    /* An allocator of its own: nothing is shared with the parent's pools. */
    apr_allocator_create(&allocator);
    apr_allocator_max_free_set(allocator, KEPT_BYTES);
    apr_pool_create_ex(&pool, NULL, NULL, allocator);
    apr_allocator_owner_set(allocator, pool);
    context = apr_pcalloc(pool, sizeof(*context));
    context->pool = pool;
    context->config = config;
    context->now = agent_clock_now();
    context->timing = config->timing;
    set_timing(&context->timing, apr_time_from_sec(config->lease_sec));
    return context;
}

/*
 * A statement on the first connection may take a quarter of a lease: a renewal
 * may wait for one there, and must have succeeded after 13 of 20 s even if it
 * was due only after a quarter of a lease. One on the other may take a half.
 */
static void init_databases(agent_supervisor_t *sv)
{
    agent_context_t *context = sv->context;
    apr_interval_time_t limit = context->timing.statement;
    apr_interval_time_t margin = apr_time_from_sec(context->config->lease_sec)
        / 10;
    agent_database_use_t first = {agent_operations, limit, limit + margin,
                                  agent_worker_on_connected};
    agent_database_use_t bulk = {agent_bulk_operations, 2 * limit,
                                 2 * limit + margin,
                                 agent_worker_on_bulk_connected};

    agent_database_init(&sv->database, context, sv, &first);
    agent_database_init(&sv->bulk, context, sv, &bulk);
}

static agent_supervisor_t *make_supervisor(
    const agent_supervisor_config_t *config)
{
    agent_context_t *context = make_context(config);
    agent_supervisor_t *sv = apr_pcalloc(context->pool, sizeof(*sv));

    sv->context = context;
    sv->parent_pid = getppid();
    sv->schedule.context = context;
    agent_poll_init(&sv->poll, context, sv);
    init_databases(sv);
    agent_worker_init(sv);
    agent_lease_init(&sv->leases, context);
    agent_batch_init(&sv->batches, context);
    agent_runner_init(&sv->runners, context);
    agent_credit_init(&sv->credits, context, &sv->batches, &sv->runners);
    agent_release_init(&sv->releases, context);
    agent_notify_init(&sv->notify, context);
    agent_claim_init(sv);
    agent_start_init(sv);
    agent_delivery_init(&sv->webhooks, context, &sv->poll);
    return sv;
}

/* Signals, descriptors, spawner, user: in this order. 0 or an exit status. */
static int prepare_process(agent_supervisor_t *sv)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGCHLD, 0};
    const agent_supervisor_config_t *config = sv->context->config;
    const int keep[] = {config->wake_fd, config->life_fd, config->log_fd};
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
    rv = agent_spawner_start(&sv->runners.spawner, config);
    if (rv != APR_SUCCESS) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0303", rv,
                           "cannot open the runner %s or start the spawner",
                           config->runner_path);
        return EXIT_CONFIG;
    }
    rv = agent_process_become(config->uid, config->gid);
    if (rv != APR_SUCCESS) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0304", rv,
                           "cannot become user %d, group %d", (int)config->uid,
                           (int)config->gid);
        return EXIT_CONFIG;
    }
    sv->signal_fd = agent_process_signal_fd(signals);
    if (sv->signal_fd < 0 || !agent_process_boot_id(sv->worker.boot_id)) {
        agent_report_write(sv->context, AGENT_LOG_ERR, "AGT0306",
                           APR_FROM_OS_ERROR(errno),
                           "this system lacks signalfd or /proc");
        return EXIT_CONFIG;
    }
    return 0;
}

/* ---- events ---- */

static void on_signal(agent_supervisor_t *sv, void *baton)
{
    struct signalfd_siginfo info;

    while (read(sv->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGUSR1) {
            agent_drain_begin(sv);
        }
        else if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) {
            agent_drain_leave(sv, TERM_TIMEOUT, "a signal");
        }
        /* SIGHUP is sent to the whole group of httpd at a restart; the parent
         * sends SIGUSR1. SIGCHLD: the spawner's socket reports exits. */
    }
}

static void take_datagram(agent_supervisor_t *sv, const char *datagram)
{
    switch (datagram[0]) {
    case AGENT_WAKE_READY:
        agent_schedule_claim(&sv->schedule);
        break;
    case AGENT_WAKE_CANCEL:
        agent_schedule_check(&sv->schedule);
        break;
    case AGENT_WAKE_CHANGED:
        agent_notify_relay(&sv->notify, datagram + 1);
        /* If a run ended, the next one of its thread may be ready. */
        agent_schedule_claim(&sv->schedule);
        break;
    }
    /* Each of these may have ended a run. */
    agent_schedule_webhooks(&sv->schedule);
}

static void on_wake(agent_supervisor_t *sv, void *baton)
{
    char datagram[AGENT_WAKE_BYTES + 1];
    ssize_t length = 0;

    /* All that have arrived: a thousand requests are one claim. */
    for (int i = 0; i < MAX_DATAGRAMS; i++) {
        length = recv(sv->context->config->wake_fd, datagram, AGENT_WAKE_BYTES,
                      MSG_DONTWAIT);
        if (length <= 0) {
            break;
        }
        datagram[length] = '\0';
        take_datagram(sv, datagram);
    }
    if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR)) {
        /* The other ends are closed: claims each second remain. */
        sv->is_wake_lost = true;
    }
}

static void leave_orphaned(agent_supervisor_t *sv)
{
    sv->is_parent_lost = true;
    agent_drain_leave(sv, ORPHAN_TIMEOUT, "the parent has ended");
}

static void on_life(agent_supervisor_t *sv, void *baton)
{
    char byte;
    ssize_t got = read(sv->context->config->life_fd, &byte, 1);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        leave_orphaned(sv);
    }
}

/* Another process may have the pipe open: one that httpd was starting when it
 * was killed. */
static void check_parent(agent_supervisor_t *sv)
{
    if (sv->context->config->life_fd >= 0 && !sv->is_parent_lost
        && getppid() != sv->parent_pid) {
        leave_orphaned(sv);
    }
}

static void on_spawner(agent_supervisor_t *sv, void *baton)
{
    if (!agent_runner_receive(sv)) {
        agent_drain_spawner_lost(sv);
    }
}

static void on_database(agent_supervisor_t *sv, void *baton)
{
    agent_database_ready(baton);
}

static void poll_database(agent_supervisor_t *sv, agent_database_t *database)
{
    if (database->state != AGENT_DATABASE_DOWN) {
        agent_poll_add(&sv->poll, agent_database_fd(database), database->events,
                       on_database, database);
    }
}

/* ---- the loop ---- */

static void tick(agent_supervisor_t *sv)
{
    if (sv->tick_at <= sv->context->now) {
        sv->tick_at = sv->context->now + TICK;
        check_parent(sv);
        agent_runner_tick_deadlines(sv);
        agent_runner_tick(sv);
        agent_runner_tick_trials(sv);
        agent_worker_tick(sv);
    }
    else if (agent_worker_next_tick(sv) <= sv->context->now) {
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
    until = agent_credit_step(&sv->credits);
    agent_runner_resume(sv);
    until = earlier(until, earlier(sv->tick_at, agent_worker_next_tick(sv)));
    until = earlier(until, agent_runner_replenish(&sv->runners));
    until = earlier(until, agent_webhook_step(&sv->webhooks));
    until = earlier(until, agent_database_step(&sv->database));
    until = earlier(until, agent_database_step(&sv->bulk));
    until = earlier(until, agent_drain_step(sv));
    agent_runner_free_dead(&sv->runners);
    if (sv->context->mode == AGENT_MODE_DONE) {
        return;
    }
    agent_poll_add(&sv->poll, sv->signal_fd, POLLIN, on_signal, NULL);
    if (!sv->is_parent_lost) {
        agent_poll_add(&sv->poll, sv->context->config->life_fd, POLLIN, on_life,
                       NULL);
    }
    if (!sv->is_wake_lost) {
        agent_poll_add(&sv->poll, sv->context->config->wake_fd, POLLIN, on_wake,
                       NULL);
    }
    if (!sv->is_spawner_lost) {
        agent_poll_add(&sv->poll, sv->runners.spawner.fd, POLLIN, on_spawner,
                       NULL);
    }
    poll_database(sv, &sv->database);
    poll_database(sv, &sv->bulk);
    agent_runner_poll(sv);
    agent_webhook_poll(&sv->webhooks);
    agent_poll_wait(&sv->poll, until);
}

int agent_supervisor_main(const agent_supervisor_config_t *config)
{
    agent_supervisor_t *sv = make_supervisor(config);
    int status = prepare_process(sv);

    if (status == 0) {
        agent_report_write(sv->context, AGENT_LOG_NOTICE, "AGT0301", 0,
                           "supervisor of host %s started: runners: %d, "
                           "%d slots each",
                           config->node_name, config->runners, config->slots);
        while (sv->context->mode != AGENT_MODE_DONE) {
            turn(sv);
        }
        agent_webhook_close(&sv->webhooks);
        agent_database_close(&sv->database, AGENT_FAILURE_RETRY);
        agent_database_close(&sv->bulk, AGENT_FAILURE_RETRY);
        agent_spawner_stop(&sv->runners.spawner, SPAWNER_MS);
        status = sv->exit_code;
        agent_report_write(sv->context, AGENT_LOG_NOTICE, "AGT0302", 0,
                           "supervisor ended");
    }
    apr_pool_destroy(sv->context->pool);
    return status;
}
