/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control of each run; see credit.h. */
#include "credit_private.h"

#include "../../base/order.h"
#include "../protocol/protocol.h"

/* Credit lapses after timing.credit, or after this time when a runner without
 * credit waits for its room: long enough for a line of 8 MB on a busy machine.
 * Both are halved for each credit that was not used before. */
#define YIELD_TIME  apr_time_from_sec(2)
#define MAX_HALVING 6

void agent_credit_init(agent_credit_queue_t *queue,
                       const agent_context_t *context,
                       agent_batch_queue_t *batches,
                       const agent_runner_table_t *runners)
{
    queue->context = context;
    queue->batches = batches;
    queue->runners = runners;
    APR_RING_INIT(&queue->classes, agent_credit_class_t, link);
    APR_RING_INIT(&queue->holders, agent_lease_t, credit.link);
}

apr_size_t agent_credit_used(const agent_credit_queue_t *queue)
{
    const agent_backlog_table_t *backlogs = &queue->batches->backlogs;

    return agent_backlog_sum(backlogs, AGENT_BACKLOG_DEDICATED)
        + agent_backlog_sum(backlogs, AGENT_BACKLOG_CREDIT);
}

apr_size_t agent_credit_wanted(const agent_lease_group_t *group)
{
    apr_size_t bytes = 0;

    for (int i = 0; i < AGENT_CREDIT_CLASSES; i++) {
        bytes += group->classes[i].wanted;
    }
    return bytes;
}

bool agent_credit_is_half_free(const agent_credit_queue_t *queue,
                               const agent_lease_t *lease)
{
    apr_size_t bytes = agent_credit_wanted(lease->group);

    for (int i = 0; i < AGENT_CREDIT_CLASSES; i++) {
        bytes += lease->group->classes[i].granted;
    }
    return agent_backlog_is_half_free(&queue->batches->backlogs,
                                      lease->deployment_id, bytes);
}

static apr_size_t medium_bytes(const agent_credit_queue_t *queue)
{
    return agent_backlog_sum(&queue->batches->backlogs, AGENT_BACKLOG_MEDIUM);
}

bool agent_credit_is_reserved(const agent_credit_queue_t *queue,
                              apr_size_t bytes)
{
    return queue->is_reserved
        && (bytes > AGENT_CREDIT_MEDIUM
            || medium_bytes(queue) + bytes > AGENT_BATCH_MEDIUM_ROOM);
}

bool agent_credit_fits(const agent_credit_queue_t *queue, apr_size_t bytes)
{
    apr_size_t used = agent_credit_used(queue) + bytes;
    apr_size_t medium = medium_bytes(queue);

    if (bytes <= AGENT_CREDIT_MEDIUM || medium > AGENT_BATCH_MEDIUM_ROOM) {
        medium = AGENT_BATCH_MEDIUM_ROOM;
    }
    return used <= AGENT_BATCH_MAX_DEDICATED + medium;
}

/* Whether dedicated batches take a long line without credit: not while the next
 * room there is for a run that waits. */
static bool has_room(const agent_credit_queue_t *queue,
                     const agent_lease_t *lease, apr_size_t bytes)
{
    return !agent_credit_is_reserved(queue, bytes)
        && agent_credit_fits(queue, bytes)
        && !agent_backlog_is_reserved(&queue->batches->backlogs,
                                      lease->deployment_id);
}

bool agent_credit_allows(const agent_credit_queue_t *queue,
                         const agent_lease_t *lease, apr_size_t length)
{
    bool is_long = length > AGENT_BATCH_LONG_LINE;
    agent_backlog_kind_t kind;

    if (length < lease->credit.granted) {
        return true;
    }
    if (is_long ? !has_room(queue, lease, length + 1)
                : lease->credit.unsaved >= AGENT_BATCH_MAX_RUN) {
        return false;
    }
    kind = agent_batch_find_kind(queue->batches, lease, length);
    return agent_backlog_has_share(&queue->batches->backlogs,
                                   lease->deployment_id, kind,
                                   lease->credit.unsaved, length + 1);
}

void agent_credit_save(agent_lease_t *lease, apr_size_t bytes)
{
    /* A statement in flight may save output of an older lease. */
    lease->credit.unsaved -= AGENT_MIN(bytes, lease->credit.unsaved);
}

/* ---- waiting ---- */

/* Whether it waits with a line that goes into a dedicated batch. */
bool agent_credit_needs_room(const agent_lease_t *lease)
{
    return lease->credit.wanted > AGENT_BATCH_LONG_LINE + 1;
}

static void start_waiting(agent_credit_queue_t *queue, agent_lease_t *lease,
                          apr_size_t bytes)
{
    int size = bytes > AGENT_CREDIT_MEDIUM ? 1 : 0;
    agent_credit_class_t *class = &lease->group->classes[size];

    if (APR_RING_EMPTY(&class->waiting, agent_lease_t, credit.link)) {
        APR_RING_INSERT_TAIL(&queue->classes, class, agent_credit_class_t,
                             link);
    }
    lease->credit.class = class;
    lease->credit.wanted = bytes;
    APR_RING_INSERT_TAIL(&class->waiting, lease, agent_lease_t, credit.link);
}

void agent_credit_stop_waiting(agent_lease_t *lease)
{
    agent_credit_class_t *class = lease->credit.class;

    APR_RING_REMOVE(lease, credit.link);
    lease->credit.wanted = 0;
    if (APR_RING_EMPTY(&class->waiting, agent_lease_t, credit.link)) {
        APR_RING_REMOVE(class, link);
        class->wanted = 0;
    }
}

void agent_credit_expect_lapse(agent_credit_queue_t *queue, apr_time_t at)
{
    queue->lapse_at = AGENT_MIN(at, queue->lapse_at);
}

void agent_credit_start_lapse(const agent_credit_queue_t *queue,
                              agent_lease_t *lease)
{
    const agent_context_t *context = queue->context;
    int lapses = lease->credit.class->lapses;

    lease->credit.lapse_at = context->now + (context->timing.credit >> lapses);
    lease->credit.yield_at = context->now + (YIELD_TIME >> lapses);
}

void agent_credit_grant(agent_credit_queue_t *queue, agent_lease_t *lease,
                        apr_size_t bytes)
{
    agent_credit_class_t *class = lease->credit.class;

    lease->credit.granted = bytes;
    lease->credit.is_medium = bytes <= AGENT_CREDIT_MEDIUM;
    if (lease->credit.is_medium) {
        agent_backlog_add(&queue->batches->backlogs, lease->deployment_id,
                          AGENT_BACKLOG_MEDIUM, bytes);
    }
    agent_credit_start_lapse(queue, lease);
    agent_credit_expect_lapse(queue, lease->credit.lapse_at);
    class->granted += bytes;
    agent_backlog_add(&queue->batches->backlogs, lease->deployment_id,
                      AGENT_BACKLOG_CREDIT, bytes);
    APR_RING_INSERT_TAIL(&queue->holders, lease, agent_lease_t, credit.link);
}

static void use(agent_credit_queue_t *queue, agent_lease_t *lease,
                apr_size_t bytes)
{
    lease->credit.granted -= bytes;
    if (lease->credit.is_medium) {
        agent_backlog_remove(&queue->batches->backlogs, lease->deployment_id,
                             AGENT_BACKLOG_MEDIUM, bytes);
    }
    lease->credit.class->granted -= bytes;
    agent_backlog_remove(&queue->batches->backlogs, lease->deployment_id,
                         AGENT_BACKLOG_CREDIT, bytes);
    if (lease->credit.granted == 0) {
        APR_RING_REMOVE(lease, credit.link);
    }
}

void agent_credit_take_back(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    if (lease->credit.granted > 0) {
        use(queue, lease, lease->credit.granted);
    }
}

/* Credit counts as used when what is left of it is less than a long line. */
void agent_credit_lapse(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    agent_credit_class_t *class = lease->credit.class;

    if (lease->credit.granted > AGENT_BATCH_LONG_LINE
        && class->lapses < MAX_HALVING) {
        class->lapses++;
    }
    agent_credit_take_back(queue, lease);
}

/* The line that came without credit no longer waits. */
static void forget_line(agent_lease_t *lease)
{
    if (lease->credit.has_line && lease->credit.wanted > 0) {
        agent_credit_stop_waiting(lease);
    }
    lease->credit.has_line = false;
}

void agent_credit_hold(agent_credit_queue_t *queue, agent_lease_t *lease,
                       apr_size_t length)
{
    if (length > AGENT_BATCH_LONG_LINE && lease->credit.wanted == 0) {
        agent_credit_take_back(queue, lease);
        lease->credit.has_line = true;
        start_waiting(queue, lease, length + 1);
    }
}

void agent_credit_spend(agent_credit_queue_t *queue, agent_lease_t *lease,
                        apr_size_t bytes)
{
    forget_line(lease);
    if (lease->credit.granted == 0) {
        return;
    }
    if (bytes < lease->credit.granted) {
        use(queue, lease, bytes);
        return;
    }
    lease->credit.class->lapses -= lease->credit.class->lapses > 0;
    agent_credit_take_back(queue, lease);
}

void agent_credit_write_go(agent_lease_t *lease)
{
    agent_runner_t *runner = lease->group->runner;

    agent_protocol_go(agent_runner_input(runner), &lease->key);
    lease->credit.go_end = runner->written
        + agent_buffer_length(&runner->input);
}

bool agent_credit_request(agent_credit_queue_t *queue, agent_lease_t *lease,
                          apr_size_t bytes)
{
    if (lease->credit.wanted > 0
        || lease->credit.go_end > lease->group->runner->written) {
        return false;
    }
    agent_credit_lapse(queue, lease);
    if (lease->state != AGENT_LEASE_HELD) {
        agent_credit_write_go(lease);
        return true;
    }
    lease->credit.requests++;
    start_waiting(queue, lease, bytes);
    return true;
}

void agent_credit_remove(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    forget_line(lease);
    /* A run that is cancelled may leave lines out. */
    if (lease->cause == AGENT_CAUSE_NONE) {
        agent_credit_lapse(queue, lease);
    }
    agent_credit_take_back(queue, lease);
    if (lease->credit.wanted > 0) {
        agent_credit_stop_waiting(lease);
    }
}

void agent_credit_release(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    bool waits = lease->credit.wanted > 0 && !lease->credit.has_line;

    agent_credit_remove(queue, lease);
    if (waits) {
        agent_credit_write_go(lease);
    }
}
