/* SPDX-License-Identifier: Apache-2.0 */
/* A waiter registry with a fake database and listener, for wait_*.c. */
#ifndef WAIT_FIXTURE_H
#define WAIT_FIXTURE_H

#include "check.h"
#include "wait_fake_database.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../mod_agent/db/listener.h"
#include "../../mod_agent/wait/dispatch.h"

#define RUN   "01890000-0000-7000-8000-000000000001"
#define OTHER "01890000-0000-7000-8000-000000000002"

/* A LISTEN connection without notifications of its own. */
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

/* Idle threads of the child. */
static int idle = 100;

static inline int count_idle(void *baton)
{
    return idle;
}

typedef struct fixture_t {
    apr_pool_t *pool;
    agent_waiter_registry_t *registry;
} fixture_t;

static inline void open_fixture_with(fixture_t *fixture,
                                     const agent_waiter_limits_t *limits)
{
    const agent_log_t log = {write_nothing, NULL};
    bool listens;

    apr_pool_create(&fixture->pool, NULL);
    assert_int_equal(agent_waiter_registry_create(&fixture->registry, "", NULL,
                                                  limits, &log, fixture->pool),
                     APR_SUCCESS);
    do {
        agent_lock_take(fixture->registry->lock);
        listens = fixture->registry->is_listening;
        agent_lock_release(fixture->registry->lock);
        sched_yield();
    } while (!listens);
}

static inline void open_fixture(fixture_t *fixture,
                                apr_interval_time_t heartbeat)
{
    const agent_waiter_limits_t limits = {
        .parked = 2,
        .blocked = 1,
        .threads = {1, 3, 1, count_idle, NULL},
        .heartbeat = heartbeat};

    open_fixture_with(fixture, &limits);
}

/* As after a turn that returned WAIT. */
static inline void make_idle(agent_waiter_t *waiter)
{
    while (agent_waiter_take_or_idle(waiter, false) != AGENT_REASON_NONE) {
        agent_waiter_end_turn(waiter);
    }
}

static inline agent_waiter_t *register_in(const fixture_t *fixture,
                                          const char *deployment_id,
                                          const char *key, int fd,
                                          bool is_stream)
{
    const agent_waiter_params_t params = {.key = key,
                                          .deployment_id = deployment_id,
                                          .client_fd = fd,
                                          .parked = true,
                                          .is_stream = is_stream};
    agent_waiter_t *waiter = NULL;
    agent_error_t *err;

    if (agent_waiter_register(&waiter, fixture->registry, &params, &err,
                              fixture->pool)
        != APR_SUCCESS) {
        return NULL;
    }
    make_idle(waiter);
    return waiter;
}

#define register_parked(fixture, key, fd, is_stream)                           \
    register_in(fixture, OTHER, key, fd, is_stream)

static inline void wait_for_wake(agent_waiter_t *waiter)
{
    struct pollfd fd = {agent_waiter_descriptor(waiter), POLLIN, 0};

    assert_int_equal(poll(&fd, 1, 120000), 1);
}

static inline bool is_dispatched(const agent_waiter_t *waiter)
{
    struct pollfd fd = {agent_waiter_descriptor(waiter), POLLIN, 0};

    return poll(&fd, 1, 0) == 1;
}

/* Waits until the waiter is dispatched, and takes its reason. */
static inline agent_wake_reason_t take(agent_waiter_t *waiter)
{
    wait_for_wake(waiter);
    return agent_waiter_take_reason(waiter);
}

#endif
