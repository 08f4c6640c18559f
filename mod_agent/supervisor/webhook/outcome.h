/* SPDX-License-Identifier: Apache-2.0 */
/* What the answer of a webhook's receiver means. */
#ifndef AGENT_SUPERVISOR_WEBHOOK_JUDGE_H
#define AGENT_SUPERVISOR_WEBHOOK_JUDGE_H

#include <stdbool.h>

#include <apr_pools.h>

/* An attempt that has ended. */
typedef struct agent_webhook_answer_t {
    /* HTTP status; 0 when none arrived. */
    int status;
    /* Without a status: what went wrong, in whoever's words. */
    const char *failure;
    /* Without a status: no attempt can succeed. */
    bool is_final;
    /* Seconds of its Retry-After; 0: none. */
    int retry_after;
} agent_webhook_answer_t;

/* Words of agent.save_webhooks. */
typedef struct agent_webhook_verdict_t {
    /* delivered, failed (to be tried again) or refused (not again). */
    const char *outcome;
    /* Why, in printable ASCII; NULL when delivered. */
    const char *reason;
    /* Seconds that the receiver asks to wait; 0: it does not. */
    int wait;
} agent_webhook_verdict_t;

/*
 * A status of 2xx: delivered. 408, 425, 429 and 5xx, and no status: failed.
 * Any other status: refused, redirects among them, which are not followed.
 */
agent_webhook_verdict_t agent_webhook_judge(
    const agent_webhook_answer_t *answer, apr_pool_t *pool);

#endif
