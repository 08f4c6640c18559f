/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of waiters and their registry, private to this folder. */
#ifndef AGENT_WAIT_STATE_H
#define AGENT_WAIT_STATE_H

#include <stdint.h>

#include <apr_allocator.h>
#include <apr_hash.h>
#include <apr_ring.h>
#include <apr_thread_proc.h>

#include "../core/lock.h"
#include "../core/throttle.h"
#include "client_address.h"
#include "slot_share.h"
#include "waiter.h"

/* Values of agent_waiter_t.last_event. */
#define AGENT_UPDATES_NONE     (-2)
#define AGENT_UPDATES_END_ONLY (INT64_MAX - 1)

struct agent_waiter_t {
    agent_waiter_registry_t *registry;
    agent_waiter_params_t params;
    /* Identifies the waiter in epoll events, which may outlive it. */
    apr_uint64_t serial;
    /* Deployment and key: waiters of the same run or thread take their turns as
     * one. Clients choose the ids of threads, so that another deployment may
     * have a thread with the same key. */
    const char *queue_key;
    /* Next waiter with the same key. */
    agent_waiter_t *next;
    /* In table.by_heartbeat. */
    APR_RING_ENTRY(agent_waiter_t) link;
    /* While is_queued; see dispatch_queue.c. */
    APR_RING_ENTRY(agent_waiter_t) queue;
    APR_RING_HEAD(agent_waiter_key_queue_t, agent_waiter_t) key_queue;
    bool is_queued;
    apr_time_t heartbeat_at;
    unsigned heartbeats;
    /* In a ring of all waiters with the API key, while has_key. One of them has
     * the times of the key, of the monotonic clock. */
    APR_RING_ENTRY(agent_waiter_t) same_key;
    bool has_key;
    apr_time_t key_check_at;
    apr_time_t key_expires_at;
    /* In table.by_timeout while it has not passed; 0: not in it. */
    APR_RING_ENTRY(agent_waiter_t) timeout;
    apr_time_t timeout_at;
    /* Bits 1 << agent_wake_reason_t. */
    unsigned reasons;
    /* Number of the last event that was delivered or queried, when the waiter
     * is subscribed; AGENT_UPDATES_NONE: it is not; AGENT_UPDATES_END_ONLY: to
     * the end of the run alone. */
    apr_int64_t last_event;
    /* Events for the next turn, in a pool of their own; NULL = none. */
    apr_array_header_t *updates;
    apr_size_t updates_bytes;
    /* Events of the current turn; used by the owner only, without lock. */
    apr_array_header_t *turn_updates;
    bool is_registered;
    /* Parked, between turns. */
    bool is_idle;
    /* Counted in dispatch.turns, and in dispatch.turns_pending. */
    bool is_dispatched;
    bool is_pending;
    int wake_fd;
};

APR_RING_HEAD(agent_waiter_ring_t, agent_waiter_t);

/* Waiters by key, by epoll serial and by heartbeat; see waiter_table.c. */
typedef struct agent_waiter_table_t {
    apr_hash_t *by_key;    /* key -> first agent_waiter_t of the chain */
    apr_hash_t *by_serial; /* waiters whose client is watched */
    struct agent_waiter_ring_t by_heartbeat; /* earliest first */
    int count;                               /* of by_heartbeat */
    struct agent_waiter_ring_t by_timeout;   /* earliest first */
    apr_uint64_t last_serial;
    agent_slot_shares_t parked;
    agent_slot_shares_t blocked;
    apr_hash_t
        *accounts; /* id -> counts of waiter_table.c; of those with limits */
    agent_client_addresses_t parked_addresses;
    agent_client_addresses_t blocked_addresses;
    int parked_per_address; /* 0 = unlimited */
    int blocked_per_address;
} agent_waiter_table_t;

/* Turns of parked waiters; see dispatch.c. */
typedef struct agent_dispatch_t {
    agent_waiter_threads_t threads;
    /* Woken waiters: the first one of each key, in rotation. */
    struct agent_waiter_ring_t queue;
    apr_hash_t *key_queues; /* queue_key -> that waiter */
    int turns;              /* dispatched and not ended */
    int turns_pending;      /* dispatched and not begun */
} agent_dispatch_t;

/* The timed actions of the watch thread; see timer.c. */
typedef struct agent_timer_t {
    apr_interval_time_t heartbeat;
    bool (*is_ending)(void);
    apr_interval_time_t grace;
    apr_time_t heartbeats_at; /* no heartbeats before: they are spread */
    apr_time_t poll_at;       /* the next poll without a LISTEN connection */
    apr_time_t ending_at;     /* the next call of is_ending */
    apr_time_t stop_at;
    bool stopping;
    bool stopped;
} agent_timer_t;

/* The subscriptions to query; see updates.c. */
typedef struct agent_updates_t {
    agent_db_pool_t *db;
    /* For the next query, under the registry's lock. */
    struct agent_update_set_t *wanted;
    /* For the current query; used by the listen thread alone. */
    struct agent_update_set_t *queried;
} agent_updates_t;

struct agent_waiter_registry_t {
    agent_log_t log;
    struct agent_listener_t *listener;
    /* For agent_waiter_registry_make_pool(). */
    apr_allocator_t *allocator;
    apr_thread_t *listen_thread;
    apr_thread_t *watch_thread;
    apr_thread_t *api_keys_thread;
    apr_thread_t *expiry_thread;
    /* End of file at [0] ends the threads. */
    int end_fds[2];
    int epoll_fd;
    /* Interrupts epoll_wait() when something is due earlier. */
    int interrupt_fd;
    agent_lock_t *lock;
    /* Under the lock: */
    agent_waiter_table_t table;
    agent_dispatch_t dispatch;
    agent_updates_t updates;
    agent_timer_t timer;
    struct agent_api_keys_t *api_keys;
    bool is_listening; /* the LISTEN connection is up */
    agent_throttle_t loss_throttle;
};

#endif
