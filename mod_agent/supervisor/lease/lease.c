/* SPDX-License-Identifier: Apache-2.0 */
/* The runs this worker holds; see lease.h. */
#include "lease.h"

#include <string.h>

#include <apr_strings.h>

#include "../runner/io.h"
#include "../instance.h"

/* How much longer each further trial of a run is; no execution is so long. */
#define TRIAL_FACTOR 6
#define MAX_TRIAL    apr_time_from_sec(7 * 86400)

void agent_lease_init(agent_supervisor_t *sv)
{
    sv->leases.by_key = apr_hash_make(sv->pool);
    APR_RING_INIT(&sv->leases.unused, agent_lease_t, link);
}

static agent_lease_t *take_unused(agent_supervisor_t *sv)
{
    agent_lease_ring_t *unused = &sv->leases.unused;
    agent_lease_t *lease;

    if (APR_RING_EMPTY(unused, agent_lease_t, link)) {
        return apr_palloc(sv->pool, sizeof(*lease));
    }
    lease = APR_RING_FIRST(unused);
    APR_RING_REMOVE(lease, link);
    return lease;
}

agent_lease_t *agent_lease_add(agent_supervisor_t *sv,
                               const agent_lease_key_t *key,
                               agent_runner_t *runner)
{
    agent_lease_t *lease = take_unused(sv);

    memset(lease, 0, sizeof(*lease));
    lease->key = *key;
    lease->state = AGENT_LEASE_HELD;
    lease->runner = runner;
    lease->trial_end = AGENT_NEVER;
    lease->deadline = AGENT_NEVER;
    lease->grace_at = AGENT_NEVER;
    if (runner != NULL) {
        APR_RING_INSERT_TAIL(&runner->leases, lease, agent_lease_t, link);
        runner->active++;
    }
    sv->leases.held++;
    sv->starts.waiting += runner != NULL;
    apr_hash_set(sv->leases.by_key, &lease->key, sizeof(lease->key), lease);
    return lease;
}

agent_lease_t *agent_lease_find(agent_supervisor_t *sv,
                                const agent_lease_key_t *key)
{
    return apr_hash_get(sv->leases.by_key, key, sizeof(*key));
}

static void drop_if_over(agent_supervisor_t *sv, agent_lease_t *lease)
{
    if (lease->state != AGENT_LEASE_GONE || lease->runner != NULL) {
        return;
    }
    apr_hash_set(sv->leases.by_key, &lease->key, sizeof(lease->key), NULL);
    APR_RING_INSERT_TAIL(&sv->leases.unused, lease, agent_lease_t, link);
}

/* It no longer waits for its start line. */
static void stop_waiting(agent_supervisor_t *sv, agent_lease_t *lease)
{
    if (!lease->is_started && lease->runner != NULL
        && lease->state == AGENT_LEASE_HELD) {
        sv->starts.waiting--;
    }
}

static apr_time_t deadline_of(const agent_supervisor_t *sv,
                              apr_int64_t limit_sec)
{
    apr_interval_time_t own = apr_time_from_sec(limit_sec);
    apr_interval_time_t all = sv->config->run_timeout;

    if (own <= 0 || (all > 0 && all < own)) {
        own = all;
    }
    return own > 0 ? sv->now + own : AGENT_NEVER;
}

/* Longer each time: a run that kills its runner late, which it does in the end
 * while it is still tried, is cleared only so often. */
static apr_interval_time_t trial_of(const agent_supervisor_t *sv,
                                    int times_cleared)
{
    apr_interval_time_t trial = sv->timing.trial;

    for (int i = 0; i < times_cleared && trial < MAX_TRIAL; i++) {
        trial *= TRIAL_FACTOR;
    }
    return trial;
}

void agent_lease_start(agent_supervisor_t *sv, agent_lease_t *lease)
{
    stop_waiting(sv, lease);
    lease->is_started = true;
    lease->runner->is_used = true;
    lease->runner->started_bytes += lease->start_bytes;
    lease->deadline = deadline_of(sv, lease->limit_sec);
    lease->trial_end = sv->now + trial_of(sv, lease->times_cleared);
}

void agent_lease_print(agent_buffer_t *items, const agent_lease_key_t *key,
                       const char *account_id)
{
    agent_buffer_print(items, "%s{\"a\":\"%s\",\"r\":\"%.36s\",\"e\":%d}",
                       agent_buffer_length(items) > 0 ? "," : "[", account_id,
                       key->run_id, (int)key->epoch);
}

void agent_lease_detach(agent_supervisor_t *sv, agent_lease_t *lease)
{
    if (lease->runner != NULL) {
        stop_waiting(sv, lease);
        agent_credit_forget(sv, lease);
        APR_RING_REMOVE(lease, link);
        lease->runner->active--;
        lease->runner->started_bytes -= lease->is_started ? lease->start_bytes
                                                          : 0;
        lease->runner = NULL;
        drop_if_over(sv, lease);
    }
}

void agent_lease_set_state(agent_supervisor_t *sv, agent_lease_t *lease,
                           agent_lease_state_t state)
{
    if (lease->state == AGENT_LEASE_HELD && state != AGENT_LEASE_HELD) {
        stop_waiting(sv, lease);
        agent_credit_release(sv, lease);
        sv->leases.held--;
    }
    lease->state = state;
    drop_if_over(sv, lease);
}

/* The runner has not heard of it. */
static void withdraw(agent_supervisor_t *sv, agent_lease_t *lease)
{
    if (lease->state == AGENT_LEASE_HELD && lease->cause != AGENT_CAUSE_LOST) {
        agent_lease_release(sv, lease, false, "it had not begun");
    }
    agent_lease_detach(sv, lease);
}

void agent_lease_cancel(agent_supervisor_t *sv, agent_lease_t *lease,
                        agent_lease_cause_t cause)
{
    lease->cause = cause;
    lease->credit.requests = 0;
    if (lease->runner != NULL && !lease->is_started) {
        withdraw(sv, lease);
        return;
    }
    lease->grace_at = sv->now + sv->timing.cancel_grace;
    if (lease->runner != NULL) {
        agent_protocol_cancel(&lease->runner->input, &lease->key);
    }
}

void agent_lease_lose(agent_supervisor_t *sv, agent_lease_t *lease)
{
    agent_report_write(sv, AGENT_LOG_NOTICE, "AGT0343", 0,
                       "run %.36s (attempt %d) is not ours any more: deleted, "
                       "or taken over after our lease ended",
                       lease->key.run_id, lease->attempt);
    if (lease->runner != NULL) {
        agent_lease_cancel(sv, lease, AGENT_CAUSE_LOST);
    }
    agent_lease_set_state(sv, lease, AGENT_LEASE_GONE);
}

void agent_lease_release(agent_supervisor_t *sv, agent_lease_t *lease,
                         bool counted, const char *reason)
{
    agent_release_add(sv, lease, counted, reason);
    agent_lease_set_state(sv, lease, AGENT_LEASE_RELEASING);
}

void agent_lease_give_up(agent_supervisor_t *sv, agent_lease_t *lease,
                         const char *error, const char *message)
{
    agent_release_give_up(sv, lease, error, message);
    agent_lease_set_state(sv, lease, AGENT_LEASE_RELEASING);
}

void agent_lease_fail(agent_supervisor_t *sv, agent_lease_t *lease,
                      const char *status, const char *error,
                      const char *message)
{
    apr_pool_t *pool;
    const char *line;

    apr_pool_create(&pool, sv->pool);
    line = agent_protocol_error(&lease->key, error, message, pool);
    agent_batch_add(sv, lease, AGENT_ITEM_EVENT, line, strlen(line));
    line = agent_protocol_end(&lease->key, status, error, message, pool);
    agent_batch_add(sv, lease, AGENT_ITEM_END, line, strlen(line));
    apr_pool_destroy(pool);
    agent_lease_set_state(sv, lease, AGENT_LEASE_ENDED);
}

void agent_lease_time_out(agent_supervisor_t *sv, agent_lease_t *lease)
{
    agent_report_write(sv, AGENT_LOG_WARNING, "AGT0340", 0,
                       "run %.36s (attempt %d) exceeded its time limit",
                       lease->key.run_id, lease->attempt);
    agent_lease_fail(sv, lease, "timeout", "TimeoutError",
                     "The run exceeded its time limit and was stopped.");
}

void agent_lease_forget_all(agent_supervisor_t *sv)
{
    apr_pool_t *pool;
    apr_hash_index_t *at;

    apr_pool_create(&pool, sv->pool);
    for (at = apr_hash_first(pool, sv->leases.by_key); at != NULL;
         at = apr_hash_next(at)) {
        agent_lease_set_state(sv, apr_hash_this_val(at), AGENT_LEASE_GONE);
    }
    apr_pool_destroy(pool);
}

/* The runner did not end a run that it was asked to end. */
static void give_up_waiting(agent_supervisor_t *sv, agent_lease_t *lease)
{
    agent_runner_t *runner = lease->runner;

    lease->grace_at = AGENT_NEVER;
    agent_report_write(sv, AGENT_LOG_WARNING, "AGT0342", 0,
                       "runner %d did not end run %.36s when asked to; the "
                       "runner will be replaced",
                       (int)runner->pid, lease->key.run_id);
    if (lease->state == AGENT_LEASE_HELD) {
        if (lease->cause == AGENT_CAUSE_DEADLINE) {
            agent_lease_time_out(sv, lease);
        }
        else {
            agent_lease_release(sv, lease, lease->cause != AGENT_CAUSE_DRAIN,
                                "the runner did not stop when asked to");
        }
    }
    agent_runner_recycle(sv, runner);
}

static void check_lease(agent_supervisor_t *sv, agent_lease_t *lease)
{
    if (lease->grace_at != AGENT_NEVER
        && ((lease->credit.wanted > 0
             && lease->credit.requests <= AGENT_CREDIT_LAST_REQUESTS)
            || !agent_runner_may_answer(sv, lease->runner))) {
        lease->grace_at = sv->now + sv->timing.cancel_grace;
    }
    else if (lease->grace_at <= sv->now) {
        give_up_waiting(sv, lease);
    }
    else if (lease->deadline <= sv->now && lease->cause == AGENT_CAUSE_NONE) {
        agent_lease_cancel(sv, lease, AGENT_CAUSE_DEADLINE);
    }
}

void agent_lease_tick(agent_supervisor_t *sv)
{
    agent_runner_t *runner;
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH(runner, &sv->runners.all, agent_runner_t, link)
    {
        AGENT_RING_EACH_SAFE(lease, next, &runner->leases, agent_lease_t, link)
        {
            check_lease(sv, lease);
        }
    }
}
