/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiter: a request that waits for a run or a thread to change.
 *
 * Wake-ups are hints. Register first, then query the run, then wait, then query
 * again: no change is missed in this order.
 */
#ifndef AGENT_WAIT_WAITER_H
#define AGENT_WAIT_WAITER_H

#include <stdbool.h>

#include <apr_tables.h>

#include "../core/error.h"
#include "../core/identity.h"
#include "waiter_registry.h"

typedef struct agent_waiter_t agent_waiter_t;

/* Why a waiter was woken. If several reasons hold, the first is reported. */
typedef enum agent_wake_reason_t {
    /* The client has disconnected. */
    AGENT_REASON_CLIENT_GONE,
    /* The client has closed its sending side, or has disconnected: TCP does not
     * tell these apart before a write. Hides no KEY_INVALID and no STOPPING:
     * they follow. */
    AGENT_REASON_HALF_CLOSED,
    /* The request's API key is no longer valid. */
    AGENT_REASON_KEY_INVALID,
    /* The child stops: the client must be made to reconnect. */
    AGENT_REASON_STOPPING,
    /* Send a heartbeat and query the run. */
    AGENT_REASON_HEARTBEAT_QUERY,
    /* Query the run: it may have changed. */
    AGENT_REASON_QUERY,
    /* New events were delivered: agent_waiter_updates(). */
    AGENT_REASON_UPDATES,
    /* Send a heartbeat. */
    AGENT_REASON_HEARTBEAT,
    /* The client has sent data (input.h). Stays pending while another reason
     * is reported. */
    AGENT_REASON_INPUT,
    /* Not woken. */
    AGENT_REASON_NONE
} agent_wake_reason_t;

/* One event of a run, as it is stored. */
typedef struct agent_run_event_t {
    apr_int64_t seq;
    const char *name;
    const char *data;
} agent_run_event_t;

typedef struct agent_waiter_params_t {
    /* Id of the run or thread, a lower case UUID; borrowed. */
    const char *key;
    /* Owner of the run or thread; borrowed. NULL: none, and no guaranteed
     * slots. */
    const char *deployment_id;
    agent_waiter_account_t account;
    /* Identity of the key that admitted the request; NULL: no key. Borrowed. */
    const agent_identity_t *identity;
    /* agent_client_address_number() of the client. */
    apr_uint64_t address;
    /* The client's socket, watched for disconnects; -1 = not watched. */
    int client_fd;
    /* Wake with INPUT when the client sends data. The first INPUT is immediate:
     * data may have been read from the socket already. */
    bool watches_input;
    /* Woken through agent_waiter_descriptor(), without a thread; otherwise a
     * thread blocks in agent_waiter_block(). */
    bool parked;
    /* Stopped without grace when the child stops, unless it has_end: an
     * export. */
    bool is_stream;
    bool has_end;
    /* Wakes once with QUERY when it has passed; 0: never. */
    apr_interval_time_t timeout;
} agent_waiter_params_t;

/* Whether a waiter could be registered now; otherwise err says why not. params:
 * deployment_id, account, is_stream, parked and address are read. */
apr_status_t agent_waiter_check(agent_waiter_registry_t *registry,
                                const agent_waiter_params_t *params,
                                agent_error_t **err, apr_pool_t *pool);

/*
 * Registers a waiter, in pool, until agent_waiter_unregister() or the end of
 * pool. Errors: OVERLOADED when a limit is reached or descriptors run out,
 * ADDRESS_FULL, LIMIT, SHUTTING_DOWN.
 */
apr_status_t agent_waiter_register(agent_waiter_t **out,
                                   agent_waiter_registry_t *registry,
                                   const agent_waiter_params_t *params,
                                   agent_error_t **err, apr_pool_t *pool);

/* Ends the registration; no effect if it has ended. */
void agent_waiter_unregister(agent_waiter_t *waiter);

/* Returns the eventfd, which is readable while a parked waiter has a reason to
 * take; owned by the waiter. */
int agent_waiter_descriptor(const agent_waiter_t *waiter);

/* To be called after the user of the descriptor has closed it. */
void agent_waiter_forget_descriptor(agent_waiter_t *waiter);

/* Begins a turn: takes the reasons since the last one; NONE when there are
 * none. */
agent_wake_reason_t agent_waiter_take_reason(agent_waiter_t *waiter);

/*
 * For a parked waiter after its registration: whether its first turn may use
 * the current thread. Otherwise it becomes idle with a turn pending.
 */
bool agent_waiter_keep_thread(agent_waiter_t *waiter);

/*
 * For a parked waiter between turns: takes its reasons, or NONE, and the
 * waiter becomes idle until it is dispatched. Waiters that were queued earlier
 * go first. has_more: the waiter has output left and needs another turn.
 */
agent_wake_reason_t agent_waiter_take_or_idle(agent_waiter_t *waiter,
                                              bool has_more);

/* Blocks until the waiter is woken and takes the reason; NONE after timeout_ms
 * (-1 = no limit) or a signal. */
agent_wake_reason_t agent_waiter_block(agent_waiter_t *waiter, int timeout_ms);

/*
 * Subscribes a stream that has sent all events of its run up to number after:
 * new ones are delivered with UPDATES. The subscription ends with any other
 * QUERY, which is also sent when events cannot be delivered.
 */
void agent_waiter_subscribe(agent_waiter_t *waiter, apr_int64_t after);

/* Subscribes to the end of the run, which was found unfinished: until the next
 * QUERY, heartbeats need no query. */
void agent_waiter_subscribe_end(agent_waiter_t *waiter);

/* Returns the events delivered with UPDATES, an array of agent_run_event_t,
 * valid until agent_waiter_end_turn(). Earlier queries may have returned the
 * first ones. */
const apr_array_header_t *agent_waiter_updates(const agent_waiter_t *waiter);

/* Ends the turn that a taken reason began. */
void agent_waiter_end_turn(agent_waiter_t *waiter);

#endif
