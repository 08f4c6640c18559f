/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory budget of a child for slow clients: output that they do not read, or
 * bodies that they do not complete. When it is exceeded, a waiting client of
 * the deployment that holds the most is evicted, the one with the largest
 * product of bytes and idle time. Of several deployments each may hold its
 * equal part of half the budget, whatever the others hold.
 *
 * Each connection or request has a share of the budget. A share is either in
 * use by one thread, or it waits for its client. Only waiting shares are
 * evicted, which frees their memory at once. Shares in use are counted but
 * never refused: the number of threads limits them.
 */
#ifndef AGENT_WAIT_BUDGET_H
#define AGENT_WAIT_BUDGET_H

#include <stdbool.h>

#include <apr_pools.h>
#include <apr_time.h>

#include "client_socket.h"

typedef struct agent_budget_t agent_budget_t;
typedef struct agent_budget_share_t agent_budget_share_t;

/* How a share is evicted. */
typedef struct agent_budget_eviction_t {
    /* Frees the memory of the share. Called in any thread, with the budget's
     * lock held. */
    void (*drop)(void *baton);
    void *baton;
    /* SHUT_RD or SHUT_RDWR, for the client's socket: the MPM, which polls it,
     * then calls the owner of the share. */
    int shutdown;
} agent_budget_eviction_t;

/* Creates the budget of a child, in pool. bytes: its size. */
apr_status_t agent_budget_create(agent_budget_t **out, apr_size_t bytes,
                                 apr_pool_t *pool);

/* Returns how many more bytes the shares may have before one is evicted. */
apr_size_t agent_budget_room(agent_budget_t *budget);

/* Adds a share of 0 bytes, in use; it ends with pool. budget is borrowed. In
 * the functions below, now is the current time. */
agent_budget_share_t *agent_budget_share_add(
    agent_budget_t *budget, const agent_budget_eviction_t *eviction,
    apr_pool_t *pool);

/* Sets, while in use, the name of the deployment that the share counts for;
 * NULL, as at first: none. */
void agent_budget_share_set_owner(agent_budget_share_t *share,
                                  const char *deployment);

/* Records, while in use, that the client has sent or read data. */
void agent_budget_share_progress(agent_budget_share_t *share, apr_time_t now);

/* Sets the size of the share while it is in use. To be called before memory is
 * allocated and after it was freed; a smaller size counts as progress. */
void agent_budget_share_set(agent_budget_share_t *share, apr_size_t bytes,
                            apr_time_t now);

/*
 * Makes the share wait for its client; its memory must not be used until
 * agent_budget_share_resume(). client is borrowed for this time. It is NULL
 * when descriptors have run out: an eviction then frees the memory, but the MPM
 * calls the owner only when the client sends or reads data, or after Timeout.
 */
void agent_budget_share_wait(agent_budget_share_t *share,
                             const agent_client_socket_t *client,
                             apr_time_t now);

/* Ends the wait of the share; no effect while it is in use. Returns false if it
 * was evicted while it waited: it is empty now. */
bool agent_budget_share_resume(agent_budget_share_t *share);

/* After that: the bytes of the share when it was last evicted, and how long
 * before that its client had made progress. */
apr_size_t agent_budget_share_lost(const agent_budget_share_t *share,
                                   apr_interval_time_t *idle);

#endif
