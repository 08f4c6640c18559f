/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control of each run; see credit.h. */
#include "credit.h"

#include "protocol.h"

/* Credit lapses after timing.credit, or after this time when a runner without
 * credit waits for its room: long enough for a line of 8 MB on a busy machine.
 * Both are halved for each credit that was not used before. */
#define YIELD_TIME  apr_time_from_sec(2)
#define MAX_HALVING 6
/* Time after a `pong` for the lines that follow it: a runner that was stopped
 * reads its input first. */
#define ANSWER_TIME apr_time_from_sec(1)
/* An iteration of the loop begins at least each second. After a longer one this
 * process was stopped, and the time is not counted. */
#define LONGEST_ITERATION apr_time_from_sec(2)

void agent_credit_init(agent_credit_queue_t *queue,
                       const agent_context_t *context,
                       const agent_batch_queue_t *batches,
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
    return queue->batches->dedicated_bytes + queue->granted;
}

apr_size_t agent_credit_wanted(const agent_lease_group_t *group)
{
    apr_size_t bytes = 0;

    for (int i = 0; i < AGENT_CREDIT_CLASSES; i++) {
        bytes += group->classes[i].wanted;
    }
    return bytes;
}

apr_size_t agent_credit_load(const agent_credit_queue_t *queue,
                             const agent_lease_group_t *group)
{
    apr_size_t bytes = queue->batches->dedicated_bytes;

    for (int i = 0; i < AGENT_CREDIT_CLASSES; i++) {
        bytes += group->classes[i].wanted + group->classes[i].granted;
    }
    return bytes;
}

bool agent_credit_has_room(const agent_credit_queue_t *queue)
{
    return !queue->is_room_taken
        && agent_credit_used(queue) < AGENT_BATCH_MAX_DEDICATED;
}

bool agent_credit_allows(const agent_credit_queue_t *queue,
                         const agent_lease_t *lease, apr_size_t length)
{
    if (length < lease->credit.granted) {
        return true;
    }
    return length <= AGENT_BATCH_LONG_LINE
        ? lease->credit.unsaved < AGENT_BATCH_MAX_RUN
        : agent_credit_has_room(queue);
}

void agent_credit_save(agent_lease_t *lease, apr_size_t bytes)
{
    /* A statement in flight may save output of an older lease. */
    lease->credit.unsaved -= bytes < lease->credit.unsaved
        ? bytes
        : lease->credit.unsaved;
}

/* ---- waiting ---- */

/* Whether it waits with a line that goes into a dedicated batch. */
static bool needs_room(const agent_lease_t *lease)
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

static void stop_waiting(agent_lease_t *lease)
{
    agent_credit_class_t *class = lease->credit.class;

    APR_RING_REMOVE(lease, credit.link);
    lease->credit.wanted = 0;
    if (APR_RING_EMPTY(&class->waiting, agent_lease_t, credit.link)) {
        APR_RING_REMOVE(class, link);
        class->wanted = 0;
    }
}

static void expect_lapse(agent_credit_queue_t *queue, apr_time_t at)
{
    queue->lapse_at = at < queue->lapse_at ? at : queue->lapse_at;
}

static void start_lapse(const agent_credit_queue_t *queue, agent_lease_t *lease)
{
    const agent_context_t *context = queue->context;
    int lapses = lease->credit.class->lapses;

    lease->credit.lapse_at = context->now + (context->timing.credit >> lapses);
    lease->credit.yield_at = context->now + (YIELD_TIME >> lapses);
}

static void grant(agent_credit_queue_t *queue, agent_lease_t *lease,
                  apr_size_t bytes)
{
    agent_credit_class_t *class = lease->credit.class;

    lease->credit.granted = bytes;
    start_lapse(queue, lease);
    expect_lapse(queue, lease->credit.lapse_at);
    class->granted += bytes;
    queue->granted += bytes;
    APR_RING_INSERT_TAIL(&queue->holders, lease, agent_lease_t, credit.link);
}

static void use(agent_credit_queue_t *queue, agent_lease_t *lease,
                apr_size_t bytes)
{
    lease->credit.granted -= bytes;
    lease->credit.class->granted -= bytes;
    queue->granted -= bytes;
    if (lease->credit.granted == 0) {
        APR_RING_REMOVE(lease, credit.link);
    }
}

static void take_back(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    if (lease->credit.granted > 0) {
        use(queue, lease, lease->credit.granted);
    }
}

/* Credit counts as used when what is left of it is less than a long line. */
static void lapse(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    agent_credit_class_t *class = lease->credit.class;

    if (lease->credit.granted > AGENT_BATCH_LONG_LINE
        && class->lapses < MAX_HALVING) {
        class->lapses++;
    }
    take_back(queue, lease);
}

/* The line that came without credit no longer waits. */
static void forget_line(agent_lease_t *lease)
{
    if (lease->credit.has_line && lease->credit.wanted > 0) {
        stop_waiting(lease);
    }
    lease->credit.has_line = false;
}

void agent_credit_hold(agent_credit_queue_t *queue, agent_lease_t *lease,
                       apr_size_t length)
{
    if (length > AGENT_BATCH_LONG_LINE && lease->credit.wanted == 0) {
        take_back(queue, lease);
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
    take_back(queue, lease);
}

static void write_go(agent_lease_t *lease)
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
    lapse(queue, lease);
    if (lease->state != AGENT_LEASE_HELD) {
        write_go(lease);
        return true;
    }
    lease->credit.requests++;
    start_waiting(queue, lease, bytes);
    return true;
}

void agent_credit_forget(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    forget_line(lease);
    /* A run that is cancelled may leave lines out. */
    if (lease->cause == AGENT_CAUSE_NONE) {
        lapse(queue, lease);
    }
    take_back(queue, lease);
    if (lease->credit.wanted > 0) {
        stop_waiting(lease);
    }
}

void agent_credit_release(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    bool waits = lease->credit.wanted > 0 && !lease->credit.has_line;

    agent_credit_forget(queue, lease);
    if (waits) {
        write_go(lease);
    }
}

/* ---- each iteration of the loop ---- */

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
        start_lapse(queue, lease);
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
            take_back(queue, lease);
        }
        else if (lease->credit.lapse_at <= now) {
            lapse(queue, lease);
        }
        else {
            expect_lapse(queue, lease->credit.lapse_at);
        }
    }
}

static void send_go(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    apr_size_t bytes = needs_room(lease) ? lease->credit.wanted : 0;

    stop_waiting(lease);
    if (bytes > 0) {
        grant(queue, lease, bytes);
    }
    if (!lease->credit.has_line) {
        write_go(lease);
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
    return needs_room(lease) && is_saved(lease)
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
        else if (!is_full && !needs_room(lease) && is_saved(lease)) {
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

static agent_credit_class_t *find_class(const agent_credit_queue_t *queue)
{
    agent_credit_class_t *class;

    AGENT_RING_EACH(class, &queue->classes, agent_credit_class_t, link)
    {
        if (class->next != NULL && has_share(queue, class)) {
            return class;
        }
    }
    return NULL;
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

static bool fits(const agent_credit_queue_t *queue, apr_size_t bytes)
{
    return agent_credit_used(queue) + bytes <= AGENT_BATCH_MAX_DEDICATED;
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
        if (fits(queue, bytes)) {
            return;
        }
        if (lease->credit.yield_at <= queue->context->now) {
            lapse(queue, lease);
        }
        else {
            expect_lapse(queue, lease->credit.yield_at);
        }
    }
}

static void grant_room(agent_credit_queue_t *queue)
{
    agent_credit_class_t *class;

    while ((class = find_class(queue)) != NULL) {
        apr_size_t bytes = class->next->credit.wanted;

        if (queue->batches->dedicated_bytes + bytes
            <= AGENT_BATCH_MAX_DEDICATED) {
            reclaim(queue, bytes);
        }
        if (!fits(queue, bytes)) {
            queue->is_room_taken = true;
            return;
        }
        serve(queue, class);
    }
}

apr_time_t agent_credit_step(agent_credit_queue_t *queue)
{
    agent_credit_class_t *class;
    agent_credit_class_t *next;

    lapse_all(queue);
    queue->is_room_taken = false;
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
