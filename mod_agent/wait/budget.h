/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that a child holds for slow clients: output that they do not read,
 * or bodies that they do not finish. When the budget is full, the waiting
 * client with the largest product of bytes and time without progress is cut.
 *
 * A share is used by one thread, or it waits for its client. Only shares that
 * wait are cut, and what they held is freed at once. So those that wait hold at
 * most the budget, less what is in use; and what is in use is bounded by the
 * threads, and never refused.
 */
#ifndef AGENT_WAIT_BUDGET_H
#define AGENT_WAIT_BUDGET_H

#include <stdbool.h>

#include <apr_pools.h>
#include <apr_time.h>

#include "client_socket.h"

typedef struct agent_budget_t agent_budget_t;
typedef struct agent_share_t agent_share_t;

/* How a share is cut. */
typedef struct agent_share_cut_t {
    /* Frees what the share holds. Called in any thread, with the budget's lock
     * held. */
    void (*drop)(void *baton);
    void *baton;
    /* The end of the client's socket that is shut down, SHUT_RD or SHUT_RDWR,
     * so that the MPM, which polls it, calls the share's owner. */
    int shutdown;
} agent_share_cut_t;

/* Of one child, in pool. */
apr_status_t agent_budget_create(agent_budget_t **out, apr_size_t bytes,
                                 apr_pool_t *pool);

/* Of one connection or request, in pool: 0 bytes, in use. budget: borrowed.
 * Below, now is the time of the call. */
agent_share_t *agent_share_add(agent_budget_t *budget,
                               const agent_share_cut_t *cut, apr_pool_t *pool);

/* While in use: the client has sent or taken something. */
void agent_share_progress(agent_share_t *share, apr_time_t now);

/* While in use: what the share holds from now on; to hold less is progress. Its
 * owner says so before it allocates more, and after it has freed something. */
void agent_share_set(agent_share_t *share, apr_size_t bytes, apr_time_t now);

/*
 * The share waits for its client: from now on its owner may not touch what it
 * holds. client: borrowed until the share is resumed; NULL when
 * descriptors have run out: a cut then frees what the share holds, and its
 * owner is called when the client does something, or after Timeout.
 */
void agent_share_wait(agent_share_t *share, const agent_client_socket_t *client,
                      apr_time_t now);

/* The share is in use again. False: it was cut, and holds nothing; said once.
 * May be called while it is in use. */
bool agent_share_resume(agent_share_t *share);

#endif
