/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control of each run; see credit.h. */
#include "credit.h"

#include "io.h"
#include "../instance.h"

/* While its runner is read. */
#define LAPSE_TIME apr_time_from_sec(10)

void agent_credit_init(agent_supervisor_t *sv)
{
    APR_RING_INIT(&sv->credits.waiting, agent_lease_t, credit.link);
    APR_RING_INIT(&sv->credits.given, agent_lease_t, credit.link);
}

apr_size_t agent_credit_used(const agent_supervisor_t *sv)
{
    return sv->batches.lane_bytes + sv->credits.granted;
}

bool agent_credit_has_room(const agent_supervisor_t *sv)
{
    return sv->credits.wanted == 0
        && agent_credit_used(sv) < AGENT_BATCH_MAX_LANES;
}

/* It asked for a line that goes into a lane. Short lines need no room there. */
static bool needs_room(const agent_lease_t *lease)
{
    return lease->credit.wanted > AGENT_BATCH_LONG_LINE + 1;
}

static void stop_waiting(agent_supervisor_t *sv, agent_lease_t *lease)
{
    APR_RING_REMOVE(lease, credit.link);
    if (needs_room(lease)) {
        sv->credits.wanted -= lease->credit.wanted;
    }
    lease->credit.wanted = 0;
}

static void take_back(agent_supervisor_t *sv, agent_lease_t *lease)
{
    if (lease->credit.granted > 0) {
        APR_RING_REMOVE(lease, credit.link);
        sv->credits.granted -= lease->credit.granted;
        lease->credit.granted = 0;
    }
}

void agent_credit_spend(agent_supervisor_t *sv, agent_lease_t *lease,
                        apr_size_t bytes)
{
    if (bytes >= lease->credit.granted) {
        take_back(sv, lease);
        return;
    }
    lease->credit.granted -= bytes;
    sv->credits.granted -= bytes;
}

bool agent_credit_ask(agent_supervisor_t *sv, agent_lease_t *lease,
                      apr_size_t bytes)
{
    if (lease->credit.wanted > 0) {
        return false;
    }
    take_back(sv, lease);
    if (lease->state != AGENT_LEASE_HELD) {
        agent_protocol_go(&lease->runner->input, &lease->key);
        return true;
    }
    lease->credit.wanted = bytes;
    lease->credit.requests++;
    if (needs_room(lease)) {
        sv->credits.wanted += bytes;
    }
    APR_RING_INSERT_TAIL(&sv->credits.waiting, lease, agent_lease_t,
                         credit.link);
    return true;
}

void agent_credit_forget(agent_supervisor_t *sv, agent_lease_t *lease)
{
    take_back(sv, lease);
    if (lease->credit.wanted > 0) {
        stop_waiting(sv, lease);
    }
}

void agent_credit_release(agent_supervisor_t *sv, agent_lease_t *lease)
{
    bool waits = lease->credit.wanted > 0;

    agent_credit_forget(sv, lease);
    if (waits) {
        agent_protocol_go(&lease->runner->input, &lease->key);
    }
}

/* Credit of its runs is of no use: it is not read, or was killed. What a runner
 * that is held sends next waits for the room that such credit takes. */
static bool is_out_of_use(const agent_runner_t *runner)
{
    return runner->is_held || runner->state >= AGENT_RUNNER_KILLED;
}

static void lapse(agent_supervisor_t *sv)
{
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH_SAFE(lease, next, &sv->credits.given, agent_lease_t,
                         credit.link)
    {
        bool is_useless = is_out_of_use(lease->runner);

        if (!is_useless && !agent_runner_may_answer(sv, lease->runner)) {
            lease->credit.lapse_at = sv->now + LAPSE_TIME;
        }
        else if (is_useless || lease->credit.lapse_at <= sv->now) {
            take_back(sv, lease);
        }
    }
}

static void tell(agent_supervisor_t *sv, agent_lease_t *lease)
{
    apr_size_t granted = needs_room(lease) ? lease->credit.wanted : 0;

    stop_waiting(sv, lease);
    if (granted > 0) {
        lease->credit.granted = granted;
        lease->credit.lapse_at = sv->now + LAPSE_TIME;
        sv->credits.granted += granted;
        APR_RING_INSERT_TAIL(&sv->credits.given, lease, agent_lease_t,
                             credit.link);
    }
    agent_protocol_go(&lease->runner->input, &lease->key);
}

void agent_credit_step(agent_supervisor_t *sv)
{
    agent_lease_t *lease;
    agent_lease_t *next;
    bool is_full = false;

    lapse(sv);
    AGENT_RING_EACH_SAFE(lease, next, &sv->credits.waiting, agent_lease_t,
                         credit.link)
    {
        if (agent_batch_is_full(sv)) {
            return;
        }
        if (lease->credit.unsaved > AGENT_CREDIT_UNSAVED
            || lease->runner->state >= AGENT_RUNNER_KILLED) {
            continue;
        }
        /* The room that comes is for the first that needs it. */
        is_full |= needs_room(lease)
            && agent_credit_used(sv) + lease->credit.wanted
                > AGENT_BATCH_MAX_LANES;
        if (!is_full || !needs_room(lease)) {
            tell(sv, lease);
        }
    }
}
