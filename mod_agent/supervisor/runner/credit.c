/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control of each run; see credit.h. */
#include "credit.h"

#include "protocol.h"

/* While its runner is read. */
#define LAPSE_TIME apr_time_from_sec(10)

void agent_credit_init(agent_credit_queue_t *queue,
                       const agent_context_t *context,
                       const agent_batch_queue_t *batches,
                       const agent_runner_table_t *runners)
{
    queue->context = context;
    queue->batches = batches;
    queue->runners = runners;
    APR_RING_INIT(&queue->waiting, agent_lease_t, credit.link);
    APR_RING_INIT(&queue->given, agent_lease_t, credit.link);
}

apr_size_t agent_credit_used(const agent_credit_queue_t *queue)
{
    return queue->batches->lane_bytes + queue->granted;
}

bool agent_credit_has_room(const agent_credit_queue_t *queue)
{
    return queue->wanted == 0
        && agent_credit_used(queue) < AGENT_BATCH_MAX_LANES;
}

bool agent_credit_takes(const agent_credit_queue_t *queue,
                        const agent_lease_t *lease, apr_size_t length)
{
    if (length < lease->credit.granted) {
        return true;
    }
    return length <= AGENT_BATCH_LONG_LINE
        ? lease->credit.unsaved < AGENT_BATCH_MAX_RUN
        : agent_credit_has_room(queue);
}

/* It requested credit for a line of a lane. Short lines need no room there. */
static bool needs_room(const agent_lease_t *lease)
{
    return lease->credit.wanted > AGENT_BATCH_LONG_LINE + 1;
}

static void stop_waiting(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    APR_RING_REMOVE(lease, credit.link);
    if (needs_room(lease)) {
        queue->wanted -= lease->credit.wanted;
    }
    lease->credit.wanted = 0;
}

static void take_back(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    if (lease->credit.granted > 0) {
        APR_RING_REMOVE(lease, credit.link);
        queue->granted -= lease->credit.granted;
        lease->credit.granted = 0;
    }
}

void agent_credit_spend(agent_credit_queue_t *queue, agent_lease_t *lease,
                        apr_size_t bytes)
{
    if (bytes >= lease->credit.granted) {
        take_back(queue, lease);
        return;
    }
    lease->credit.granted -= bytes;
    queue->granted -= bytes;
}

bool agent_credit_ask(agent_credit_queue_t *queue, agent_lease_t *lease,
                      apr_size_t bytes)
{
    if (lease->credit.wanted > 0) {
        return false;
    }
    take_back(queue, lease);
    if (lease->state != AGENT_LEASE_HELD) {
        agent_protocol_go(&lease->runner->input, &lease->key);
        return true;
    }
    lease->credit.wanted = bytes;
    lease->credit.requests++;
    if (needs_room(lease)) {
        queue->wanted += bytes;
    }
    APR_RING_INSERT_TAIL(&queue->waiting, lease, agent_lease_t, credit.link);
    return true;
}

void agent_credit_forget(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    take_back(queue, lease);
    if (lease->credit.wanted > 0) {
        stop_waiting(queue, lease);
    }
}

void agent_credit_release(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    bool waits = lease->credit.wanted > 0;

    agent_credit_forget(queue, lease);
    if (waits) {
        agent_protocol_go(&lease->runner->input, &lease->key);
    }
}

/* Credit of its runs is useless: it is held, or was killed. The next line of a
 * held runner waits for the room that such credit takes. */
static bool is_out_of_use(const agent_runner_t *runner)
{
    return runner->is_held || runner->state >= AGENT_RUNNER_KILLED;
}

static void lapse(agent_credit_queue_t *queue)
{
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH_SAFE(lease, next, &queue->given, agent_lease_t, credit.link)
    {
        bool is_useless = is_out_of_use(lease->runner);

        if (!is_useless
            && !agent_runner_may_answer(queue->runners, lease->runner)) {
            lease->credit.lapse_at = queue->context->now + LAPSE_TIME;
        }
        else if (is_useless || lease->credit.lapse_at <= queue->context->now) {
            take_back(queue, lease);
        }
    }
}

static void send_go(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    apr_size_t granted = needs_room(lease) ? lease->credit.wanted : 0;

    stop_waiting(queue, lease);
    if (granted > 0) {
        lease->credit.granted = granted;
        lease->credit.lapse_at = queue->context->now + LAPSE_TIME;
        queue->granted += granted;
        APR_RING_INSERT_TAIL(&queue->given, lease, agent_lease_t, credit.link);
    }
    agent_protocol_go(&lease->runner->input, &lease->key);
}

void agent_credit_step(agent_credit_queue_t *queue)
{
    agent_lease_t *lease;
    agent_lease_t *next;
    bool is_full = false;

    lapse(queue);
    AGENT_RING_EACH_SAFE(lease, next, &queue->waiting, agent_lease_t,
                         credit.link)
    {
        if (agent_batch_is_full(queue->batches)) {
            return;
        }
        if (lease->credit.unsaved > AGENT_CREDIT_UNSAVED
            || lease->runner->state >= AGENT_RUNNER_KILLED) {
            continue;
        }
        /* The next room is for the first lease that needs it. */
        is_full |= needs_room(lease)
            && agent_credit_used(queue) + lease->credit.wanted
                > AGENT_BATCH_MAX_LANES;
        if (!is_full || !needs_room(lease)) {
            send_go(queue, lease);
        }
    }
}
