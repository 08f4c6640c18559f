/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control of each run by credit; see credit.h. */
#include "credit.h"

#include "state.h"

void agent_credit_init(agent_supervisor_t *sv)
{
    APR_RING_INIT(&sv->credits.waiting, agent_lease_t, credit_link);
}

static bool is_empty(const agent_supervisor_t *sv)
{
    return APR_RING_EMPTY(&sv->credits.waiting, agent_lease_t, credit_link);
}

apr_size_t agent_credit_used(const agent_supervisor_t *sv)
{
    return sv->batches.lane_bytes + sv->credits.granted;
}

bool agent_credit_has_room(const agent_supervisor_t *sv)
{
    return is_empty(sv) && agent_credit_used(sv) < AGENT_BATCH_MAX_LANES;
}

static void stop_waiting(agent_supervisor_t *sv, agent_lease_t *lease)
{
    APR_RING_REMOVE(lease, credit_link);
    sv->credits.wanted -= lease->wanted;
    lease->wanted = 0;
}

void agent_credit_spend(agent_supervisor_t *sv, agent_lease_t *lease,
                        apr_size_t bytes)
{
    if (bytes > lease->granted) {
        bytes = lease->granted;
    }
    lease->granted -= bytes;
    sv->credits.granted -= bytes;
}

bool agent_credit_ask(agent_supervisor_t *sv, agent_lease_t *lease,
                      apr_size_t bytes)
{
    if (lease->wanted > 0) {
        return false;
    }
    agent_credit_spend(sv, lease, lease->granted);
    if (lease->state != AGENT_LEASE_HELD) {
        agent_protocol_go(&lease->runner->input, &lease->key);
        return true;
    }
    lease->wanted = bytes;
    sv->credits.wanted += bytes;
    APR_RING_INSERT_TAIL(&sv->credits.waiting, lease, agent_lease_t,
                         credit_link);
    return true;
}

void agent_credit_release(agent_supervisor_t *sv, agent_lease_t *lease)
{
    agent_credit_spend(sv, lease, lease->granted);
    if (lease->wanted > 0) {
        stop_waiting(sv, lease);
        agent_protocol_go(&lease->runner->input, &lease->key);
    }
}

void agent_credit_forget(agent_supervisor_t *sv, agent_lease_t *lease)
{
    agent_credit_spend(sv, lease, lease->granted);
    if (lease->wanted > 0) {
        stop_waiting(sv, lease);
    }
}

/* While nothing else uses the lanes any request fits. */
static bool fits(const agent_supervisor_t *sv, const agent_lease_t *lease)
{
    apr_size_t used = agent_credit_used(sv);

    return used == 0 || used + lease->wanted <= AGENT_BATCH_MAX_LANES;
}

/* Its short lines are saved, all but AGENT_CREDIT_UNSAVED. */
static bool is_saved(const agent_supervisor_t *sv, const agent_lease_t *lease)
{
    return sv->batches.shared_bytes <= AGENT_CREDIT_UNSAVED
        || agent_batch_measure_run(sv, lease->key.run_id)
        <= AGENT_CREDIT_UNSAVED;
}

static void give(agent_supervisor_t *sv, agent_lease_t *lease)
{
    lease->granted = lease->wanted;
    sv->credits.granted += lease->granted;
    stop_waiting(sv, lease);
    agent_protocol_go(&lease->runner->input, &lease->key);
}

void agent_credit_step(agent_supervisor_t *sv)
{
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH_SAFE(lease, next, &sv->credits.waiting, agent_lease_t,
                         credit_link)
    {
        if (agent_batch_is_full(sv) || !fits(sv, lease)) {
            return;
        }
        if (is_saved(sv, lease)) {
            give(sv, lease);
        }
    }
}
