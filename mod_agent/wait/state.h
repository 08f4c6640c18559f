/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share; see wait.h. */
#ifndef AGENT_WAIT_STATE_H
#define AGENT_WAIT_STATE_H

#include <stdint.h>

#include <apr_allocator.h>
#include <apr_hash.h>
#include <apr_ring.h>
#include <apr_thread_mutex.h>
#include <apr_thread_proc.h>

#include "client_address.h"
#include "waiter.h"

/* How often waiters look while no notification can be heard. */
#define AGENT_WAIT_DEAF_INTERVAL apr_time_from_sec(1)

#define AGENT_WAIT_NO_NEWS (-2)
/* After the last event there can be. */
#define AGENT_WAIT_END_ONLY (INT64_MAX - 1)

struct agent_waiter_t {
    agent_waits_t *waits;
    agent_wait_entry_t entry;
    /* Names this waiter to epoll, which may speak of one that has left. */
    apr_uint64_t serial;
    /* The next with the same key. */
    agent_waiter_t *next;
    APR_RING_ENTRY(agent_waiter_t) link;
    /* In waits->woken or another's line, when is_queued; see queue.c. */
    APR_RING_ENTRY(agent_waiter_t) queue;
    APR_RING_HEAD(agent_waiter_line_t, agent_waiter_t) line;
    bool is_queued;
    apr_time_t heartbeat_at;
    unsigned beats;
    /* Bits 1 << agent_wait_t. */
    unsigned reasons;
    /* Number of the last event that was brought, or taken before;
     * AGENT_WAIT_NO_NEWS = none are to be brought, AGENT_WAIT_END_ONLY = none,
     * and the waiter has nothing to look for before the end. */
    apr_int64_t brought;
    /* Events that were brought, in a pool of their own; NULL = none. */
    apr_array_header_t *coming;
    apr_size_t coming_bytes;
    /* Those of them that were taken, the owner's alone. */
    apr_array_header_t *taken;
    bool entered;
    /* It has nothing to do: its next turn needs a thread. */
    bool rests;
    /* One of waits->turns_out, and of waits->turns_pending. */
    bool is_out;
    bool is_pending;
    int wake_fd;
};

APR_RING_HEAD(agent_waiter_ring_t, agent_waiter_t);

struct agent_waits_t {
    agent_log_t log;
    apr_interval_time_t heartbeat;
    bool (*is_ending)(void);
    apr_interval_time_t grace;
    agent_wait_threads_t threads;
    struct agent_listener_t *listener;
    agent_pool_t *db;
    /* Of agent_waits_make_pool(). */
    apr_allocator_t *allocator;
    /* The hear thread's own: what it asks for now; see news.c. */
    struct agent_wait_wanted_t *asked;
    apr_thread_t *hear_thread;
    apr_thread_t *watch_thread;
    /* End of file at [0] ends both threads. */
    int end_fds[2];
    int epoll_fd;
    /* Written to when something is due earlier than the watch thread knows. */
    int nudge_fd;
    apr_thread_mutex_t *mutex;
    /* Under mutex: */
    apr_hash_t *by_key;    /* key -> first agent_waiter_t of the chain */
    apr_hash_t *by_serial; /* those whose client is watched */
    struct agent_wait_wanted_t *wanted;      /* gathered for the next time */
    struct agent_waiter_ring_t by_heartbeat; /* the earliest first */
    int count;                               /* of the ring */
    apr_time_t beats_at; /* no heartbeats before: they are spread */
    /* Parked and not dispatched: the first of each key, in rotation. */
    struct agent_waiter_ring_t woken;
    apr_hash_t *lines; /* key -> the waiter of woken */
    int turns_out;     /* of parked waiters, from dispatch to end of turn */
    int turns_pending; /* those of them that have not begun */
    apr_uint64_t last_serial;
    int free_parked;
    int free_blocked;
    /* Of the waiters that are parked, and of those that block. */
    agent_addresses_t parked_addresses;
    agent_addresses_t blocked_addresses;
    int parked_per_address; /* 0 = any number; these two never change */
    int blocked_per_address;
    bool stopping;
    bool stopped;
    apr_time_t stop_at;
    apr_time_t ask_at; /* whether this child is ending */
    bool hearing;
    apr_time_t look_at; /* the next look while deaf */
    apr_time_t complained_at;
};

void agent_wait_drop_coming_locked(agent_waiter_t *waiter);
void agent_wait_stop_locked(agent_waits_t *waits, apr_interval_time_t grace);
/* The watch thread looks again at what is due. */
void agent_wait_nudge(const agent_waits_t *waits);

/* In the hear thread: a key has changed; all that have were told of. */
void agent_wait_note_change(agent_waits_t *waits, const char *key,
                            apr_ssize_t length);
void agent_wait_fetch_news(agent_waits_t *waits);
void agent_wait_make_wanted(agent_waits_t *waits, apr_pool_t *pool);
/* True when the hear thread will ask whether the waiter has to look. */
bool agent_wait_want_review_locked(agent_waiter_t *waiter);

/* The threads' functions; data is the agent_waits_t. */
void *APR_THREAD_FUNC agent_wait_hear(apr_thread_t *thread, void *data);
void *APR_THREAD_FUNC agent_wait_watch(apr_thread_t *thread, void *data);

struct agent_listener_t *agent_wait_make_listener(agent_waits_t *waits,
                                                  const char *conninfo,
                                                  apr_pool_t *pool);
apr_status_t agent_wait_open_watch(agent_waits_t *waits);
apr_status_t agent_wait_watch_client(agent_waits_t *waits,
                                     const agent_waiter_t *waiter);
/* After INPUT was taken. reads: what else the client sends is a reason again,
 * as all that came before was read; else only that it leaves is one. */
void agent_wait_watch_again(const agent_waits_t *waits,
                            const agent_waiter_t *waiter, bool reads);
void agent_wait_forget_client(agent_waits_t *waits,
                              const agent_waiter_t *waiter);

#endif
