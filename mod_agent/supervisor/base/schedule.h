/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Due times of statements that other parts request: they only set a time here,
 * which the statement's due() (statement/, webhook/) returns.
 */
#ifndef AGENT_SUPERVISOR_SCHEDULE_H
#define AGENT_SUPERVISOR_SCHEDULE_H

#include "context.h"

typedef struct agent_schedule_t {
    const agent_context_t *context;
    /* claim_runs. */
    apr_time_t claim_at;
    /* claim_runs for quarantined runs, while no ordinary slot is free. */
    apr_time_t claim_quarantined_at;
    /* check_leases, and when it also searches leases that this worker does not
     * know. */
    apr_time_t check_at;
    apr_time_t search_at;
    /* The server may execute a claim until then whose result was lost: its runs
     * will be leased to this worker, which does not know them. */
    apr_time_t lost_claim_until;
    /* claim_webhooks: when it is due, and when it was sent last. */
    apr_time_t webhooks_at;
    apr_time_t webhooks_sent_at;
} agent_schedule_t;

/* Between two requested claims of webhooks. */
#define AGENT_SCHEDULE_WEBHOOK_PAUSE apr_time_from_msec(100)

/* Runs of any deployment may have become ready: claim now, of all pools. For
 * those of one, see runner/pool/pool.h. */
static inline void agent_schedule_claim(agent_schedule_t *schedule)
{
    schedule->claim_at = schedule->context->now;
}

/* Runs were requeued, maybe quarantined: claim now, even if the only runners
 * with room are quarantine runners. */
static inline void agent_schedule_claim_requeued(agent_schedule_t *schedule)
{
    schedule->claim_at = schedule->context->now;
    schedule->claim_quarantined_at = schedule->context->now;
}

/* A run was cancelled: check the leases now. */
static inline void agent_schedule_check(agent_schedule_t *schedule)
{
    schedule->check_at = schedule->context->now;
}

/* The database may have leases that this worker does not know: search them now.
 */
static inline void agent_schedule_search(agent_schedule_t *schedule)
{
    schedule->check_at = schedule->context->now;
    schedule->search_at = schedule->context->now;
}

/* A run ended, which may have added a webhook: claim webhooks soon. */
static inline void agent_schedule_webhooks(agent_schedule_t *schedule)
{
    apr_time_t soon = schedule->webhooks_sent_at + AGENT_SCHEDULE_WEBHOOK_PAUSE;

    if (soon < schedule->webhooks_at) {
        schedule->webhooks_at = soon;
    }
}

#endif
