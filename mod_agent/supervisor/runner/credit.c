/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control of each run; see credit.h. */
#include "credit.h"

#include "protocol.h"

/* Credit lapses after timing.credit, or after this time when it takes the room
 * that a runner without credit waits for: long enough for a line of 8 MB on a
 * busy machine. Both are halved for each credit that was not used before. */
#define YIELD_TIME  apr_time_from_sec(2)
#define MAX_HALVING 6
/* After a `pong`: the lines of a runner that was stopped follow its input. */
#define ANSWER_TIME apr_time_from_sec(1)
/* The loop turns each second. A longer time, in which this process was stopped,
 * is not counted. */
#define LONGEST_TURN apr_time_from_sec(2)

void agent_credit_init(agent_credit_queue_t *queue,
                       const agent_context_t *context,
                       const agent_batch_queue_t *batches,
                       const agent_runner_table_t *runners)
{
    queue->context = context;
    queue->batches = batches;
    queue->runners = runners;
    APR_RING_INIT(&queue->turns, agent_credit_turn_t, link);
    APR_RING_INIT(&queue->given, agent_lease_t, credit.link);
}

apr_size_t agent_credit_used(const agent_credit_queue_t *queue)
{
    return queue->batches->lane_bytes + queue->granted;
}

apr_size_t agent_credit_wanted(const agent_lease_group_t *group)
{
    apr_size_t bytes = 0;

    for (int i = 0; i < AGENT_CREDIT_TURNS; i++) {
        bytes += group->turns[i].wanted;
    }
    return bytes;
}

apr_size_t agent_credit_load(const agent_credit_queue_t *queue,
                             const agent_lease_group_t *group)
{
    apr_size_t bytes = queue->batches->lane_bytes;

    for (int i = 0; i < AGENT_CREDIT_TURNS; i++) {
        bytes += group->turns[i].wanted + group->turns[i].granted;
    }
    return bytes;
}

bool agent_credit_has_room(const agent_credit_queue_t *queue)
{
    return !queue->is_room_taken
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

void agent_credit_save(agent_lease_t *lease, apr_size_t bytes)
{
    /* A statement in flight may save output of an older lease. */
    lease->credit.unsaved -= bytes < lease->credit.unsaved
        ? bytes
        : lease->credit.unsaved;
}

/* ---- waiting ---- */

/* Whether it requested credit for a line that goes into a lane. */
static bool needs_room(const agent_lease_t *lease)
{
    return lease->credit.wanted > AGENT_BATCH_LONG_LINE + 1;
}

static void start_waiting(agent_credit_queue_t *queue, agent_lease_t *lease,
                          apr_size_t bytes)
{
    int size = bytes > AGENT_CREDIT_MEDIUM ? 1 : 0;
    agent_credit_turn_t *turn = &lease->group->turns[size];

    if (APR_RING_EMPTY(&turn->waiting, agent_lease_t, credit.link)) {
        APR_RING_INSERT_TAIL(&queue->turns, turn, agent_credit_turn_t, link);
    }
    lease->credit.turn = turn;
    lease->credit.wanted = bytes;
    APR_RING_INSERT_TAIL(&turn->waiting, lease, agent_lease_t, credit.link);
}

static void stop_waiting(agent_lease_t *lease)
{
    agent_credit_turn_t *turn = lease->credit.turn;

    APR_RING_REMOVE(lease, credit.link);
    lease->credit.wanted = 0;
    if (APR_RING_EMPTY(&turn->waiting, agent_lease_t, credit.link)) {
        APR_RING_REMOVE(turn, link);
        turn->wanted = 0;
    }
}

static void expect_lapse(agent_credit_queue_t *queue, apr_time_t at)
{
    queue->lapse_at = at < queue->lapse_at ? at : queue->lapse_at;
}

static void start_lapse(const agent_credit_queue_t *queue, agent_lease_t *lease)
{
    const agent_context_t *context = queue->context;
    int lapses = lease->credit.turn->lapses;

    lease->credit.lapse_at = context->now + (context->timing.credit >> lapses);
    lease->credit.yield_at = context->now + (YIELD_TIME >> lapses);
}

static void give(agent_credit_queue_t *queue, agent_lease_t *lease,
                 apr_size_t bytes)
{
    agent_credit_turn_t *turn = lease->credit.turn;

    lease->credit.granted = bytes;
    start_lapse(queue, lease);
    expect_lapse(queue, lease->credit.lapse_at);
    turn->granted += bytes;
    queue->granted += bytes;
    APR_RING_INSERT_TAIL(&queue->given, lease, agent_lease_t, credit.link);
}

static void use(agent_credit_queue_t *queue, agent_lease_t *lease,
                apr_size_t bytes)
{
    lease->credit.granted -= bytes;
    lease->credit.turn->granted -= bytes;
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

/* Credit counts as used when less than a long line of it is left. */
static void lapse(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    agent_credit_turn_t *turn = lease->credit.turn;

    if (lease->credit.granted > AGENT_BATCH_LONG_LINE
        && turn->lapses < MAX_HALVING) {
        turn->lapses++;
    }
    take_back(queue, lease);
}

/* Its line no longer waits for room. */
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
    lease->credit.turn->lapses -= lease->credit.turn->lapses > 0;
    take_back(queue, lease);
}

static void write_go(agent_lease_t *lease)
{
    agent_runner_t *runner = lease->runner;

    agent_protocol_go(&runner->input, &lease->key);
    lease->credit.go_end = runner->written
        + agent_buffer_length(&runner->input);
}

bool agent_credit_ask(agent_credit_queue_t *queue, agent_lease_t *lease,
                      apr_size_t bytes)
{
    if (lease->credit.wanted > 0
        || lease->credit.go_end > lease->runner->written) {
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

/* ---- each turn of the loop ---- */

/* Whether the credit cannot be used: its runner was killed, or is not read
 * because a line of another run waits, perhaps for the room of this credit. */
static bool is_out_of_use(const agent_lease_t *lease)
{
    return lease->runner->state >= AGENT_RUNNER_KILLED
        || (lease->runner->is_held && !lease->credit.has_line);
}

/* Credit lapses when the runner has been read, so a line that was sent in time
 * is never too late. */
static void move_lapse(const agent_credit_queue_t *queue, agent_lease_t *lease,
                       apr_interval_time_t missed)
{
    const agent_runner_t *runner = lease->runner;
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
    apr_interval_time_t missed = now - queue->stepped_at > LONGEST_TURN
        ? now - queue->stepped_at
        : 0;
    agent_lease_t *lease;
    agent_lease_t *next;

    queue->stepped_at = now;
    queue->lapse_at = AGENT_CLOCK_NEVER;
    AGENT_RING_EACH_SAFE(lease, next, &queue->given, agent_lease_t, credit.link)
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
        give(queue, lease, bytes);
    }
    if (!lease->credit.has_line) {
        write_go(lease);
    }
}

/* Whether enough of its own output is committed. */
static bool is_saved(const agent_lease_t *lease)
{
    return lease->credit.unsaved <= AGENT_CREDIT_UNSAVED
        && lease->runner->state < AGENT_RUNNER_KILLED;
}

/* Whether it waits only for room in the lanes. */
static bool waits_for_room(const agent_lease_t *lease)
{
    return needs_room(lease) && is_saved(lease)
        && (!lease->runner->is_held || lease->credit.has_line);
}

/* Finds the leases of a turn that wait for room; sends `go` to others that may
 * continue. */
static void begin_turn(agent_credit_queue_t *queue, agent_credit_turn_t *turn)
{
    bool is_full = agent_batch_is_full(queue->batches);
    agent_lease_t *lease;
    agent_lease_t *next;

    turn->next = NULL;
    turn->wanted = 0;
    AGENT_RING_EACH_SAFE(lease, next, &turn->waiting, agent_lease_t,
                         credit.link)
    {
        if (waits_for_room(lease)) {
            turn->next = turn->next != NULL ? turn->next : lease;
            turn->wanted += lease->credit.wanted;
        }
        else if (!is_full && !needs_room(lease) && is_saved(lease)) {
            send_go(queue, lease);
        }
    }
}

/* Whether the next lease of the turn may have credit: always while the turn has
 * none, else up to a third of the room that others leave. */
static bool has_share(const agent_credit_queue_t *queue,
                      const agent_credit_turn_t *turn)
{
    apr_size_t bytes = turn->next->credit.wanted;
    apr_size_t used = agent_credit_used(queue) + bytes;

    return turn->granted == 0
        || (used < AGENT_BATCH_MAX_LANES
            && turn->granted + bytes <= (AGENT_BATCH_MAX_LANES - used) / 2);
}

static agent_credit_turn_t *find_turn(const agent_credit_queue_t *queue)
{
    agent_credit_turn_t *turn;

    AGENT_RING_EACH(turn, &queue->turns, agent_credit_turn_t, link)
    {
        if (turn->next != NULL && has_share(queue, turn)) {
            return turn;
        }
    }
    return NULL;
}

static agent_lease_t *find_next(const agent_credit_turn_t *turn)
{
    agent_lease_t *lease = turn->next;

    while ((lease = APR_RING_NEXT(lease, credit.link))
           != APR_RING_SENTINEL(&turn->waiting, agent_lease_t, credit.link)) {
        if (waits_for_room(lease)) {
            return lease;
        }
    }
    return NULL;
}

static void serve(agent_credit_queue_t *queue, agent_credit_turn_t *turn)
{
    agent_lease_t *lease = turn->next;

    turn->next = find_next(turn);
    turn->wanted -= lease->credit.wanted;
    APR_RING_REMOVE(turn, link);
    APR_RING_INSERT_TAIL(&queue->turns, turn, agent_credit_turn_t, link);
    send_go(queue, lease);
}

static bool fits(const agent_credit_queue_t *queue, apr_size_t bytes)
{
    return agent_credit_used(queue) + bytes <= AGENT_BATCH_MAX_LANES;
}

/* A runner without credit waits for room: takes back credit that was not used
 * in time, oldest first. */
static void reclaim(agent_credit_queue_t *queue, apr_size_t bytes)
{
    agent_lease_t *lease;
    agent_lease_t *next;

    AGENT_RING_EACH_SAFE(lease, next, &queue->given, agent_lease_t, credit.link)
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

static void give_room(agent_credit_queue_t *queue)
{
    agent_credit_turn_t *turn;

    while ((turn = find_turn(queue)) != NULL) {
        apr_size_t bytes = turn->next->credit.wanted;

        if (queue->batches->lane_bytes + bytes <= AGENT_BATCH_MAX_LANES) {
            reclaim(queue, bytes);
        }
        if (!fits(queue, bytes)) {
            queue->is_room_taken = true;
            return;
        }
        serve(queue, turn);
    }
}

apr_time_t agent_credit_step(agent_credit_queue_t *queue)
{
    agent_credit_turn_t *turn;
    agent_credit_turn_t *next;

    lapse_all(queue);
    queue->is_room_taken = false;
    AGENT_RING_EACH_SAFE(turn, next, &queue->turns, agent_credit_turn_t, link)
    {
        begin_turn(queue, turn);
    }
    if (!agent_batch_is_full(queue->batches)) {
        give_room(queue);
    }
    return queue->lapse_at;
}
