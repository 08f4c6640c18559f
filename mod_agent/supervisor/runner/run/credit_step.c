/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control, in each iteration of the loop; see credit.h. */
#include "credit_private.h"

#include <string.h>

/* Time after a `pong` for the lines that follow it: a runner that was stopped
 * reads its input first. */
#define ANSWER_TIME apr_time_from_sec(1)
/* An iteration of the loop begins at least each second. After a longer one this
 * process was stopped, and the time is not counted. */
#define LONGEST_ITERATION apr_time_from_sec(2)

/* Whether the credit cannot be used: its runner was killed, or is not read
 * because a line of another run waits, perhaps for the room of this credit. */
static bool is_out_of_use(const agent_lease_t *lease)
{
    return lease->group->runner->state >= AGENT_RUNNER_KILLED
        || (lease->group->runner->is_held && !lease->credit.has_line);
}

/* Credit lapses when the runner has been read, so a line that was sent in time
 * is never too late. */
static void move_lapse(const agent_credit_queue_t *queue, agent_lease_t *lease,
                       apr_interval_time_t missed)
{
    const agent_runner_t *runner = lease->group->runner;
    apr_time_t answered = queue->context->now + ANSWER_TIME;

    lease->credit.lapse_at += missed;
    lease->credit.yield_at += missed;
    if (!agent_runner_may_answer(queue->runners, runner)) {
        agent_credit_start_lapse(queue, lease);
    }
    else if (runner->pong_by != AGENT_CLOCK_NEVER
             && lease->credit.lapse_at < answered) {
        lease->credit.lapse_at = answered;
    }
}

static void lapse_all(agent_credit_queue_t *queue)
{
    apr_time_t now = queue->context->now;
    apr_interval_time_t missed = now - queue->stepped_at > LONGEST_ITERATION
        ? now - queue->stepped_at
        : 0;
    agent_lease_t *lease;
    agent_lease_t *next;

    queue->stepped_at = now;
    queue->lapse_at = AGENT_CLOCK_NEVER;
    AGENT_RING_EACH_SAFE(lease, next, &queue->holders, agent_lease_t,
                         credit.link)
    {
        move_lapse(queue, lease, missed);
        if (is_out_of_use(lease)) {
            agent_credit_take_back(queue, lease);
        }
        else if (lease->credit.lapse_at <= now) {
            agent_credit_lapse(queue, lease);
        }
        else {
            agent_credit_expect_lapse(queue, lease->credit.lapse_at);
        }
    }
}

static void send_go(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    apr_size_t bytes = agent_credit_needs_room(lease) ? lease->credit.wanted
                                                      : 0;

    agent_credit_stop_waiting(lease);
    if (bytes > 0) {
        agent_credit_grant(queue, lease, bytes);
    }
    if (!lease->credit.has_line) {
        agent_credit_write_go(lease);
    }
}

/* Whether enough of its own output is committed. */
static bool is_saved(const agent_lease_t *lease)
{
    return lease->credit.unsaved <= AGENT_CREDIT_UNSAVED
        && lease->group->runner->state < AGENT_RUNNER_KILLED;
}

/* Whether it waits only for room in dedicated batches. */
static bool waits_for_room(const agent_lease_t *lease)
{
    return agent_credit_needs_room(lease) && is_saved(lease)
        && (!lease->group->runner->is_held || lease->credit.has_line);
}

/* Finds the first lease of a class that waits for room, and the bytes that all
 * such leases want; sends `go` to the others that may continue. */
static void prepare_class(agent_credit_queue_t *queue,
                          agent_credit_class_t *class)
{
    bool is_full = agent_batch_is_full(queue->batches);
    agent_lease_t *lease;
    agent_lease_t *next;

    class->next = NULL;
    class->wanted = 0;
    AGENT_RING_EACH_SAFE(lease, next, &class->waiting, agent_lease_t,
                         credit.link)
    {
        if (waits_for_room(lease)) {
            class->next = class->next != NULL ? class->next : lease;
            class->wanted += lease->credit.wanted;
        }
        else if (!is_full && !agent_credit_needs_room(lease)
                 && is_saved(lease)) {
            send_go(queue, lease);
        }
    }
}

/* Whether the next lease of the class may have credit: always while the class
 * has none, else up to a third of the room that the others leave. */
static bool has_share(const agent_credit_queue_t *queue,
                      const agent_credit_class_t *class)
{
    apr_size_t bytes = class->next->credit.wanted;
    apr_size_t used = agent_credit_used(queue) + bytes;

    return class->granted == 0
        || (used < AGENT_BATCH_MAX_DEDICATED
            && class->granted + bytes
                <= (AGENT_BATCH_MAX_DEDICATED - used) / 2);
}

static agent_lease_t *find_next(const agent_credit_class_t *class)
{
    agent_lease_t *lease = class->next;

    while ((lease = APR_RING_NEXT(lease, credit.link))
           != APR_RING_SENTINEL(&class->waiting, agent_lease_t, credit.link)) {
        if (waits_for_room(lease)) {
            return lease;
        }
    }
    return NULL;
}

static void serve(agent_credit_queue_t *queue, agent_credit_class_t *class)
{
    agent_lease_t *lease = class->next;

    class->next = find_next(class);
    class->wanted -= lease->credit.wanted;
    APR_RING_REMOVE(class, link);
    APR_RING_INSERT_TAIL(&queue->classes, class, agent_credit_class_t, link);
    send_go(queue, lease);
}

static void lapse_or_wait(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    if (lease->credit.yield_at <= queue->context->now) {
        agent_credit_lapse(queue, lease);
    }
    else {
        agent_credit_expect_lapse(queue, lease->credit.yield_at);
    }
}

/* Whether the room of the lease's deployment suffices. Bytes of the run there
 * do not count: its own output is saved before it gets credit. */
static bool fits_share(const agent_credit_queue_t *queue,
                       const agent_lease_t *lease)
{
    return agent_backlog_has_share(
        &queue->batches->backlogs, lease->deployment_id,
        AGENT_BACKLOG_DEDICATED, 0, lease->credit.wanted);
}

/* Makes room for a runner without credit: lets credit lapse that was not used
 * within YIELD_TIME, oldest first. */
static void reclaim(agent_credit_queue_t *queue, apr_size_t bytes)
{
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH_SAFE(lease, next, &queue->holders, agent_lease_t,
                         credit.link)
    {
        if (agent_credit_fits(queue, bytes)) {
            return;
        }
        lapse_or_wait(queue, lease);
    }
}

/* Makes room within the share of the deployment, for a run of a runner without
 * credit: lets credit of other runs of its account lapse in the same way. */
static void reclaim_share(agent_credit_queue_t *queue,
                          const agent_lease_t *waiting)
{
    const agent_account_map_t *accounts = &queue->batches->accounts;
    const char *account_id = agent_account_map_find(accounts,
                                                    waiting->deployment_id);
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH_SAFE(lease, next, &queue->holders, agent_lease_t,
                         credit.link)
    {
        if (fits_share(queue, waiting)) {
            return;
        }
        if (strcmp(agent_account_map_find(accounts, lease->deployment_id),
                   account_id)
            == 0) {
            lapse_or_wait(queue, lease);
        }
    }
}

/* Whether the lease's deployment has a share for what it requested; if not, the
 * deployment's next room is for this lease. */
static bool take_share(agent_credit_queue_t *queue, const agent_lease_t *lease)
{
    const char *deployment_id = lease->deployment_id;

    if (agent_backlog_is_reserved(&queue->batches->backlogs, deployment_id)) {
        return false;
    }
    if (!fits_share(queue, lease)
        && agent_backlog_has_share_without_credit(
            &queue->batches->backlogs, deployment_id, lease->credit.wanted)) {
        reclaim_share(queue, lease);
    }
    if (fits_share(queue, lease)) {
        return true;
    }
    agent_backlog_reserve(&queue->batches->backlogs, deployment_id);
    return false;
}

static agent_credit_class_t *find_class(agent_credit_queue_t *queue)
{
    agent_credit_class_t *class;

    AGENT_RING_EACH(class, &queue->classes, agent_credit_class_t, link)
    {
        if (class->next != NULL
            && !agent_credit_is_reserved(queue, class->next->credit.wanted)
            && has_share(queue, class) && take_share(queue, class->next)) {
            return class;
        }
    }
    return NULL;
}

static void grant_room(agent_credit_queue_t *queue)
{
    agent_credit_class_t *class;

    while ((class = find_class(queue)) != NULL) {
        apr_size_t bytes = class->next->credit.wanted;

        if (agent_backlog_sum(&queue->batches->backlogs,
                              AGENT_BACKLOG_DEDICATED)
                + bytes
            <= AGENT_BATCH_MAX_DEDICATED) {
            reclaim(queue, bytes);
        }
        if (!agent_credit_fits(queue, bytes)) {
            queue->is_reserved = true;
            if (bytes <= AGENT_CREDIT_MEDIUM) {
                return;
            }
        }
        else {
            serve(queue, class);
        }
    }
}

apr_time_t agent_credit_step(agent_credit_queue_t *queue)
{
    agent_credit_class_t *class;
    agent_credit_class_t *next;

    lapse_all(queue);
    queue->is_reserved = false;
    agent_backlog_begin_iteration(&queue->batches->backlogs);
    AGENT_RING_EACH_SAFE(class, next, &queue->classes, agent_credit_class_t,
                         link)
    {
        prepare_class(queue, class);
    }
    if (!agent_batch_is_full(queue->batches)) {
        grant_room(queue);
    }
    return queue->lapse_at;
}
