/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of one child, and warnings about settings that lower them; see
 * capacity.h. */
#include "capacity.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ap_mpm.h>
#include <scoreboard.h>

#include "../private.h"
#include "conftree.h"

/* The highest default of AgentMaxWaiters. */
#define DEFAULT_MAX_WAITERS 10000
/* The event MPM's own default. */
#define DEFAULT_WORKER_FACTOR 2
/* The default of AgentMaxBody, and the minimum of bodies. */
#define BODY_BYTES   (4 * 1024 * 1024)
#define LEAST_BODIES 4
/* For each request that waits for its run: a socket, its eventfd, and a
 * duplicate of the socket with another eventfd while output is held; and a
 * socket, its duplicate and an eventfd for half as many requests that wait for
 * their bodies. */
#define WAITER_DESCRIPTORS 6
/* Descriptors for the rest of a child: log files, listeners, database
 * connections and other clients. */
#define OTHER_DESCRIPTORS 500
/* One address may have 1/4 of the slots by default, and at least 8: a browser
 * may have several pages open. */
#define ADDRESS_PART      4
#define LEAST_PER_ADDRESS 8
/* Parked requests may always use 1/8 of the threads, those that wait for their
 * clients another 1/8, and bodies that are discarded a third one. */
#define LEAST_TURNS_PART 8

static int query_mpm(int what, int fallback)
{
    int value = fallback;

    return ap_mpm_query(what, &value) == APR_SUCCESS ? value : fallback;
}

static int get_threads(void)
{
    int threads = query_mpm(AP_MPMQ_MAX_THREADS, 1);

    return threads > 0 ? threads : 1;
}

static int find_descriptor_room(void)
{
    struct rlimit limit = {0};
    rlim_t room;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return AGENT_MAX_WAITERS;
    }
    if (limit.rlim_cur < OTHER_DESCRIPTORS + WAITER_DESCRIPTORS) {
        return 1;
    }
    room = (limit.rlim_cur - OTHER_DESCRIPTORS) / WAITER_DESCRIPTORS;
    return room < AGENT_MAX_WAITERS ? (int)room : AGENT_MAX_WAITERS;
}

/* Connections without a thread that the event MPM lets a child have. */
static int find_connection_room(void)
{
    const char *text = agent_conftree_find("AsyncRequestWorkerFactor");
    double factor = text != NULL ? strtod(text, NULL) : DEFAULT_WORKER_FACTOR;
    double room = factor * get_threads();

    return room < AGENT_MAX_WAITERS ? (int)room : AGENT_MAX_WAITERS;
}

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

int agent_capacity_waiters(const agent_server_config_t *config)
{
    int wanted = config->max_waiters;

    if (wanted == -1) {
        wanted = at_most(find_connection_room(), DEFAULT_MAX_WAITERS);
    }
    return at_most(wanted, find_descriptor_room());
}

int agent_capacity_reserved_threads(void)
{
    int threads = get_threads();

    return threads > 1 ? threads / 2 : 1;
}

int agent_capacity_blocked_waiters(const agent_server_config_t *config)
{
    int half = agent_capacity_reserved_threads();

    /* The other half serves requests that do not wait. */
    return config->max_waiters != -1 ? at_most(config->max_waiters, half)
                                     : half;
}

int agent_capacity_body_waiters(const agent_server_config_t *config)
{
    return (agent_capacity_waiters(config) + 1) / 2;
}

int agent_capacity_waiters_per_address(const agent_server_config_t *config,
                                       int slots)
{
    if (config->waiters_per_address != -1) {
        return config->waiters_per_address;
    }
    return slots > ADDRESS_PART * LEAST_PER_ADDRESS ? slots / ADDRESS_PART
                                                    : LEAST_PER_ADDRESS;
}

int agent_capacity_children(void)
{
    return query_mpm(AP_MPMQ_MAX_DAEMONS, 1);
}

int agent_capacity_child_connections(int size)
{
    return at_most(size, get_threads()) + 1;
}

int agent_capacity_turn_connections(int size)
{
    return size > 1 ? size / 2 : 1;
}

/* A part of the threads. */
static int find_least_turns(void)
{
    int threads = get_threads();

    return threads > LEAST_TURNS_PART ? threads / LEAST_TURNS_PART : 1;
}

/* A minimum, so that turns continue, slowly, while other requests keep the
 * threads busy. */
int agent_capacity_min_turns(int connections)
{
    return at_most(find_least_turns(), connections);
}

int agent_capacity_client_threads(void)
{
    return find_least_turns();
}

int agent_capacity_discarding_threads(void)
{
    return find_least_turns();
}

int agent_capacity_max_turns(int connections)
{
    return at_most(agent_capacity_reserved_threads(), connections);
}

struct agent_capacity_child_t {
    int threads;
    /* Index in the scoreboard; -1 = not known yet. */
    int child;
};

agent_capacity_child_t *agent_capacity_make_child(apr_pool_t *pool)
{
    agent_capacity_child_t *self = apr_palloc(pool, sizeof(*self));

    self->threads = get_threads();
    self->child = -1;
    return self;
}

/* The parent sets the process id after the child has started. */
static int find_child(void)
{
    int limit = query_mpm(AP_MPMQ_HARD_LIMIT_DAEMONS, 0);
    pid_t pid = getpid();

    for (int i = 0; i < limit; i++) {
        if (ap_scoreboard_image->parent[i].pid == pid) {
            return i;
        }
    }
    return -1;
}

int agent_capacity_idle_threads(void *baton)
{
    agent_capacity_child_t *self = baton;
    int idle = 0;

    if (self->child < 0) {
        self->child = ap_scoreboard_image != NULL ? find_child() : -1;
    }
    for (int i = 0; self->child >= 0 && i < self->threads; i++) {
        const worker_score *score = ap_get_scoreboard_worker_from_indexes(
            self->child, i);

        idle += score != NULL && score->status == SERVER_READY;
    }
    return idle;
}

/* As if each thread read a body. */
apr_int64_t agent_capacity_body_bytes(void)
{
    int bodies = get_threads() > LEAST_BODIES ? get_threads() : LEAST_BODIES;

    return (apr_int64_t)bodies * BODY_BYTES;
}

/* A gracefully stopped child keeps its slot until its last request has ended.
 * No new child can be started without a free slot. */
static void check_slots(server_rec *server)
{
    int children = agent_capacity_children();
    int slots = query_mpm(AP_MPMQ_HARD_LIMIT_DAEMONS, children);

    if (slots < 2 * children) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     AGENT_LOGNO(0409) "ServerLimit: expected at least %d for "
                                       "graceful restarts while requests wait "
                                       "(three times the %d children), got %d",
                     3 * children, children, slots);
    }
}

static void check_per_address(const agent_server_config_t *config,
                              server_rec *server)
{
    int slots = agent_capacity_waiters(config);

    if (config->waiters_per_address >= slots) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     AGENT_LOGNO(0442) "AgentMaxWaitersPerAddress: expected "
                                       "less than the %d requests of a child "
                                       "that may wait (AgentMaxWaiters), got "
                                       "%d: one address may take all slots",
                     slots, config->waiters_per_address);
    }
}

void agent_capacity_check(const agent_server_config_t *config,
                          server_rec *server)
{
    int wanted = config->max_waiters;
    int descriptors = find_descriptor_room();

    check_per_address(config, server);
    if (!agent_config_parking(config) || !query_mpm(AP_MPMQ_CAN_WAITIO, 0)) {
        return;
    }
    check_slots(server);
    if (wanted > descriptors) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     AGENT_LOGNO(0410) "AgentMaxWaiters: expected a limit of "
                                       "open files (ulimit -n) of at least %d, "
                                       "so %d requests of a child may wait "
                                       "instead of %d",
                     WAITER_DESCRIPTORS * wanted + OTHER_DESCRIPTORS,
                     descriptors, wanted);
    }
    if (wanted > find_connection_room()) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server,
                     AGENT_LOGNO(0411) "AgentMaxWaiters: expected an "
                                       "AsyncRequestWorkerFactor of at least "
                                       "%d, or a child stops accepting at "
                                       "about %d connections",
                     (wanted + get_threads() - 1) / get_threads(),
                     find_connection_room());
    }
}
