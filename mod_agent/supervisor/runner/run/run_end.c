/* SPDX-License-Identifier: Apache-2.0 */
/* How a run leaves this worker; see run_end.h. */
#include "run_end.h"

#include <string.h>

#include "../protocol/protocol.h"
#include "runs.h"

void agent_run_end_set_state(agent_runs_t *runs, agent_lease_t *lease,
                             agent_lease_state_t state)
{
    if (lease->state == AGENT_LEASE_HELD && state != AGENT_LEASE_HELD) {
        agent_credit_release(&runs->credits, lease);
        agent_runner_request_release(&runs->requests, lease);
    }
    agent_lease_set_state(&runs->leases, lease, state);
}

void agent_run_end_detach(agent_runs_t *runs, agent_lease_t *lease)
{
    agent_credit_remove(&runs->credits, lease);
    agent_runner_request_discard(&runs->requests, lease);
    agent_lease_detach(&runs->leases, lease);
}

/* Takes back a run whose runner was not given its start line. */
static void withdraw(agent_runs_t *runs, agent_lease_t *lease)
{
    if (lease->state == AGENT_LEASE_HELD && lease->cause != AGENT_CAUSE_LOST) {
        agent_run_end_release(runs, lease, false, "it had not begun");
    }
    agent_run_end_detach(runs, lease);
}

void agent_run_end_cancel(agent_runs_t *runs, agent_lease_t *lease,
                          agent_lease_cause_t cause)
{
    lease->cause = cause;
    lease->credit.requests = 0;
    if (lease->group != NULL && !lease->is_started) {
        withdraw(runs, lease);
        return;
    }
    lease->grace_at = runs->context->now + runs->context->timing.cancel_grace;
    if (lease->group != NULL) {
        agent_protocol_cancel(agent_runner_input(lease->group->runner),
                              &lease->key);
    }
}

void agent_run_end_stop(agent_runs_t *runs, agent_lease_t *lease,
                        apr_interval_time_t timeout)
{
    if (lease->group != NULL && lease->is_started) {
        lease->is_stopping = true;
        agent_protocol_stop(agent_runner_input(lease->group->runner),
                            &lease->key, "drain", apr_time_as_msec(timeout));
    }
    else if (lease->group != NULL) {
        withdraw(runs, lease);
    }
}

void agent_run_end_withdraw(agent_runs_t *runs, agent_lease_group_t *group)
{
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH_SAFE(lease, next, &group->leases, agent_lease_t, link)
    {
        if (agent_lease_waits(lease)) {
            agent_run_end_cancel(runs, lease, AGENT_CAUSE_DRAIN);
        }
    }
}

void agent_run_end_lose(agent_runs_t *runs, agent_lease_t *lease)
{
    agent_report_write(
        runs->context, AGENT_LOG_NOTICE, "AGT0343", 0,
        "the lease of run %.36s (attempt %d) is lost: the run was deleted, or "
        "claimed by another worker after the lease expired, or the database "
        "has lost output of it",
        lease->key.run_id, lease->attempt);
    if (lease->group != NULL) {
        agent_run_end_cancel(runs, lease, AGENT_CAUSE_LOST);
    }
    agent_run_end_set_state(runs, lease, AGENT_LEASE_GONE);
}

void agent_run_end_release(agent_runs_t *runs, agent_lease_t *lease,
                           bool counted, const char *reason)
{
    agent_release_add(&runs->releases, lease, counted, reason);
    /* The release waits for uncommitted output. */
    agent_batch_flush(&runs->batches);
    agent_run_end_set_state(runs, lease, AGENT_LEASE_RELEASING);
}

void agent_run_end_release_duplicate(agent_runs_t *runs,
                                     const agent_lease_key_t *key,
                                     const char *deployment_id)
{
    agent_lease_t *lease = agent_lease_find(&runs->leases, key);

    agent_release_add_duplicate(&runs->releases, key, deployment_id,
                                "the database had lost a claim");
    agent_batch_flush(&runs->batches);
    if (lease != NULL && lease->state == AGENT_LEASE_HELD) {
        agent_run_end_lose(runs, lease);
    }
}

void agent_run_end_release_unknown(agent_runs_t *runs,
                                   const agent_lease_key_t *key,
                                   const char *deployment_id)
{
    agent_release_add_duplicate(&runs->releases, key, deployment_id,
                                "its worker did not know it");
    agent_batch_flush(&runs->batches);
}

void agent_run_end_give_up(agent_runs_t *runs, agent_lease_t *lease,
                           const char *error, const char *message)
{
    agent_release_give_up(&runs->releases, lease, error, message);
    agent_run_end_set_state(runs, lease, AGENT_LEASE_RELEASING);
}

void agent_run_end_fail(agent_runs_t *runs, agent_lease_t *lease,
                        const char *status, const char *error,
                        const char *message)
{
    apr_pool_t *pool;
    const char *line;

    apr_pool_create(&pool, runs->context->pool);
    if (!lease->is_call) {
        line = agent_protocol_error(&lease->key, error, message, pool);
        agent_batch_add(&runs->batches, lease, AGENT_ITEM_EVENT, line,
                        strlen(line), -1);
    }
    line = agent_protocol_end(&lease->key, status, error, message, pool);
    agent_batch_add(&runs->batches, lease, AGENT_ITEM_FAILURE, line,
                    strlen(line), -1);
    apr_pool_destroy(pool);
    agent_run_end_set_state(runs, lease, AGENT_LEASE_ENDED);
}

void agent_run_end_time_out(agent_runs_t *runs, agent_lease_t *lease)
{
    agent_report_write(runs->context, AGENT_LOG_WARNING, "AGT0340", 0,
                       "run %.36s (attempt %d) exceeded its time limit",
                       lease->key.run_id, lease->attempt);
    agent_run_end_fail(runs, lease, "timeout", "TimeoutError",
                       "The run exceeded its time limit and was stopped.");
}

void agent_run_end_discard_output(agent_runs_t *runs, const char *run_id)
{
    apr_array_header_t *dropped;
    apr_pool_t *pool;

    apr_pool_create(&pool, runs->context->pool);
    dropped = apr_array_make(pool, 4, sizeof(agent_lease_key_t));
    agent_batch_discard(&runs->batches, run_id, 0, dropped);
    for (int i = 0; i < dropped->nelts; i++) {
        agent_lease_t *lease = agent_lease_find(
            &runs->leases, &APR_ARRAY_IDX(dropped, i, agent_lease_key_t));

        if (lease != NULL && lease->state == AGENT_LEASE_ENDED) {
            agent_run_end_set_state(runs, lease, AGENT_LEASE_GONE);
        }
    }
    apr_pool_destroy(pool);
}

void agent_run_end_abandon_all(agent_runs_t *runs)
{
    apr_pool_t *pool;
    apr_hash_index_t *at;

    apr_pool_create(&pool, runs->context->pool);
    for (at = apr_hash_first(pool, runs->leases.by_key); at != NULL;
         at = apr_hash_next(at)) {
        agent_run_end_set_state(runs, apr_hash_this_val(at), AGENT_LEASE_GONE);
    }
    apr_pool_destroy(pool);
}
