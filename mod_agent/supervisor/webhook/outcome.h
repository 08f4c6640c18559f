/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a delivery, from the response of its receiver. */
#ifndef AGENT_SUPERVISOR_WEBHOOK_OUTCOME_H
#define AGENT_SUPERVISOR_WEBHOOK_OUTCOME_H

#include <apr_pools.h>

/* The response to an attempt, or its failure. */
typedef struct agent_webhook_response_t {
    /* HTTP status; 0 when none arrived. */
    int status;
    /* Without a status: the reason, which may quote the receiver; or NULL. */
    const char *failure;
    /* Seconds of its Retry-After; 0 without one. */
    int retry_after;
} agent_webhook_response_t;

/* The outcome as agent.save_webhooks takes it. */
typedef struct agent_webhook_outcome_t {
    /* delivered, failed (tried again) or refused (not tried again). */
    const char *result;
    /* Why, in printable ASCII; NULL when delivered. */
    const char *reason;
    /* Seconds of Retry-After; 0: none. */
    int wait;
} agent_webhook_outcome_t;

/*
 * delivered: a status of 2xx. failed: 408, 425, 429, 5xx, or no status, also if
 * this server may not call the address: another server on the same database
 * may. refused: anything else, redirects too, since they are not followed. The
 * reason is in pool.
 */
agent_webhook_outcome_t agent_webhook_outcome(
    const agent_webhook_response_t *response, apr_pool_t *pool);

#endif
