/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for runs: two threads per child hear which runs changed, which
 * clients left and whose heartbeat is due, and wake the requests concerned.
 *
 * A wake-up is a hint. The order that loses none: enter, then look at the run,
 * then wait, then look again.
 */
#ifndef AGENT_WAIT_WAITER_H
#define AGENT_WAIT_WAITER_H

#include <stdbool.h>

#include <apr_tables.h>
#include <apr_time.h>

#include "../core/log.h"
#include "../db/pool.h"
#include "limits.h"

typedef struct agent_waits_t agent_waits_t;
typedef struct agent_waiter_t agent_waiter_t;

/* Why a waiter was woken: the first of these that holds. */
typedef enum agent_wait_t {
    /* The client is gone: nobody reads what is sent. */
    AGENT_WAIT_GONE,
    /* This child ends: give the client a reason to come again. */
    AGENT_WAIT_STOPPING,
    /* Time to show the client a sign of life, and to look. */
    AGENT_WAIT_HEARTBEAT,
    /* The run may have changed: look. */
    AGENT_WAIT_WOKEN,
    /* Its next events are at hand: agent_wait_news(). */
    AGENT_WAIT_NEWS,
    /* Time to show the client a sign of life, no more. */
    AGENT_WAIT_SIGN,
    /* The client has sent something (input.h); kept while others go first. */
    AGENT_WAIT_INPUT,
    /* Nothing happened. */
    AGENT_WAIT_NOTHING
} agent_wait_t;

/* One event of a run, as it is stored. */
typedef struct agent_wait_event_t {
    apr_int64_t seq;
    const char *name;
    const char *data;
} agent_wait_event_t;

/* Who waits, and for what. */
typedef struct agent_wait_entry_t {
    /* Id of a run or of a thread, as a lower case UUID; borrowed. */
    const char *key;
    /* Whose it is; borrowed. */
    const char *account_id;
    /* Names the client's address, or network, among all. */
    apr_uint64_t address;
    /* The client's socket, to see it leave; -1 = not watched. */
    int client_fd;
    /* What the client sends is a reason too: INPUT, the first at once, for
     * what has been read from its socket and not been looked at. */
    bool watches_input;
    /* Woken through agent_wait_descriptor(); otherwise it blocks. */
    bool parked;
    /* Stopped with the child's end at once, without grace. */
    bool is_stream;
} agent_wait_entry_t;

/* Starts the threads; they end when pool does. conninfo: libpq's, to LISTEN;
 * db: for what is read for all streams at once. */
apr_status_t agent_waits_create(agent_waits_t **out, const char *conninfo,
                                agent_pool_t *db,
                                const agent_waits_limits_t *limits,
                                const agent_log_t *log, apr_pool_t *pool);

/* This child ends: no new waiters; streams are woken with AGENT_WAIT_STOPPING
 * now, whoever else still waits after grace then. */
void agent_waits_stop(agent_waits_t *waits, apr_interval_time_t grace);

/* Whether a waiter could enter now; else err is why not. */
apr_status_t agent_wait_check(agent_waits_t *waits, bool parked,
                              apr_uint64_t address, agent_error_t **err,
                              apr_pool_t *pool);

/*
 * Registers a waiter, in pool, until agent_wait_leave() or the pool's end.
 * Errors: OVERLOADED when a limit is reached or descriptors have run out,
 * SHUTTING_DOWN.
 */
apr_status_t agent_wait_enter(agent_waiter_t **out, agent_waits_t *waits,
                              const agent_wait_entry_t *entry,
                              agent_error_t **err, apr_pool_t *pool);

/* Readable while a parked waiter has something to take; lose: it is closed. */
int agent_wait_descriptor(const agent_waiter_t *waiter);
void agent_wait_lose_descriptor(agent_waiter_t *waiter);
/* Why the waiter was woken since it last took; NOTHING when it was not. */
agent_wait_t agent_wait_take(agent_waiter_t *waiter);

/* Whether a parked waiter may take its first turn with the thread that it has;
 * otherwise it rests, with a turn to take. */
bool agent_wait_keep_thread(agent_waiter_t *waiter);

/*
 * The same by the thread that leaves the waiter if that is NOTHING: it is then
 * dispatched for its next turn, at once if others were queued before it.
 * has_more: it has a turn to take, WOKEN, whatever happened.
 */
agent_wait_t agent_wait_take_or_rest(agent_waiter_t *waiter, bool has_more);

/* Blocks until there is something to take, and takes it; after timeout_ms, or
 * a signal, NOTHING. timeout_ms: -1 = none. */
agent_wait_t agent_wait_block(agent_waiter_t *waiter, int timeout_ms);

/*
 * From now on the events after number after of the run that the waiter waits
 * for are brought to it, as long as that is simple: whenever it is not, the
 * waiter is woken to look, and asks for them again after that. For a stream
 * that has just seen that there are no more.
 */
void agent_wait_bring_news(agent_waiter_t *waiter, apr_int64_t after);

/* From now on, until it is woken to look, the waiter needs no look but at the
 * end of its run: it was seen to go on. */
void agent_wait_expect_end(agent_waiter_t *waiter);

/*
 * What agent_wait_take() has just announced: array of agent_wait_event_t, until
 * agent_wait_end_turn(). The first may be older than what was looked up since.
 */
const apr_array_header_t *agent_wait_news(const agent_waiter_t *waiter);

/* What was taken has been done. */
void agent_wait_end_turn(agent_waiter_t *waiter);

/*
 * A pool of its own for memory that one thread makes and any thread destroys;
 * the caller must destroy it. Never NULL: without memory the child ends.
 */
apr_pool_t *agent_waits_make_pool(agent_waits_t *waits);

/* May be called twice. */
void agent_wait_leave(agent_waiter_t *waiter);

#endif
