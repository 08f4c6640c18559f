/* SPDX-License-Identifier: Apache-2.0 */
/* The waiters of a child, with a database that is played; for wait_*.c. */
#ifndef WAIT_FIXTURE_H
#define WAIT_FIXTURE_H

#include "check.h"
#include "wait_fake_database.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../mod_agent/db/listen.h"
#include "../../mod_agent/wait/dispatch.h"

#define RUN   "01890000-0000-7000-8000-000000000001"
#define OTHER "01890000-0000-7000-8000-000000000002"

/* A connection on which nothing comes by itself. */
struct agent_listener_t {
    int stop_fd;
    agent_listener_events_t events;
};

agent_listener_t *agent_listener_create(const char *conninfo,
                                        const char *channel, int stop_fd,
                                        const agent_listener_events_t *events,
                                        apr_pool_t *pool)
{
    agent_listener_t *listener = apr_palloc(pool, sizeof(*listener));

    listener->stop_fd = stop_fd;
    listener->events = *events;
    return listener;
}

void agent_listener_run(agent_listener_t *listener)
{
    struct pollfd fd = {listener->stop_fd, POLLIN, 0};

    listener->events.connected(listener->events.baton);
    poll(&fd, 1, -1);
}

static inline void write_nothing(void *baton, agent_log_level_t level,
                                 const char *id, apr_status_t rv,
                                 const char *text)
{
}

/* Threads of the child that have nothing to do. */
static int idle = 100;

static inline int count_idle(void *baton)
{
    return idle;
}

typedef struct site_t {
    apr_pool_t *pool;
    agent_waits_t *waits;
} site_t;

static inline void open_site_with(site_t *site,
                                  const agent_waits_limits_t *limits)
{
    const agent_log_t log = {write_nothing, NULL};
    bool hears;

    apr_pool_create(&site->pool, NULL);
    assert_int_equal(
        agent_waits_create(&site->waits, "", NULL, limits, &log, site->pool),
        APR_SUCCESS);
    do {
        apr_thread_mutex_lock(site->waits->mutex);
        hears = site->waits->hearing;
        apr_thread_mutex_unlock(site->waits->mutex);
        sched_yield();
    } while (!hears);
}

static inline void open_site(site_t *site, apr_interval_time_t heartbeat)
{
    const agent_waits_limits_t limits = {.parked = 2,
                                         .blocked = 1,
                                         .threads = {1, 3, 1, count_idle, NULL},
                                         .heartbeat = heartbeat};

    open_site_with(site, &limits);
}

/* As after a turn that left nothing to do. */
static inline void rest(agent_waiter_t *waiter)
{
    while (agent_wait_take_or_rest(waiter, false) != AGENT_WAIT_NOTHING) {
        agent_wait_end_turn(waiter);
    }
}

static inline agent_waiter_t *enter(const site_t *site, const char *key, int fd,
                                    bool is_stream)
{
    const agent_wait_entry_t entry = {.key = key,
                                      .account_id = OTHER,
                                      .client_fd = fd,
                                      .parked = true,
                                      .is_stream = is_stream};
    agent_waiter_t *waiter = NULL;
    agent_error_t *err;

    if (agent_wait_enter(&waiter, site->waits, &entry, &err, site->pool)
        != APR_SUCCESS) {
        return NULL;
    }
    rest(waiter);
    return waiter;
}

static inline void wait_for_wake(agent_waiter_t *waiter)
{
    struct pollfd fd = {agent_wait_descriptor(waiter), POLLIN, 0};

    assert_int_equal(poll(&fd, 1, 120000), 1);
}

static inline bool is_dispatched(const agent_waiter_t *waiter)
{
    struct pollfd fd = {agent_wait_descriptor(waiter), POLLIN, 0};

    return poll(&fd, 1, 0) == 1;
}

/* Waits for the waiter to be dispatched; why it was woken. */
static inline agent_wait_t take(agent_waiter_t *waiter)
{
    wait_for_wake(waiter);
    return agent_wait_take(waiter);
}

#endif
