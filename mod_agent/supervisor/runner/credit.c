/* SPDX-License-Identifier: Apache-2.0 */
/* Flow control of each run; see credit.h. */
#include "credit.h"

#include "protocol.h"

/* Credit lapses after this time, halved for each one that lapsed before. */
#define LAPSE_TIME  apr_time_from_sec(10)
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

/* It requested credit for a line of a lane. Short lines need no room there. */
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

static void expect_lapse(agent_credit_queue_t *queue,
                         const agent_lease_t *lease)
{
    if (lease->credit.lapse_at < queue->lapse_at) {
        queue->lapse_at = lease->credit.lapse_at;
    }
}

static void give(agent_credit_queue_t *queue, agent_lease_t *lease,
                 apr_size_t bytes)
{
    agent_credit_turn_t *turn = lease->credit.turn;

    lease->credit.granted = bytes;
    lease->credit.lapse_at = queue->context->now + (LAPSE_TIME >> turn->lapses);
    expect_lapse(queue, lease);
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

void agent_credit_spend(agent_credit_queue_t *queue, agent_lease_t *lease,
                        apr_size_t bytes)
{
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
    take_back(queue, lease);
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
    take_back(queue, lease);
    if (lease->credit.wanted > 0) {
        stop_waiting(lease);
    }
}

void agent_credit_release(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    bool waits = lease->credit.wanted > 0;

    agent_credit_forget(queue, lease);
    if (waits) {
        write_go(lease);
    }
}

/* ---- each turn of the loop ---- */

/* Credit of its runs is useless: it is held, or was killed. The next line of a
 * held runner waits for the room that such credit takes. */
static bool is_out_of_use(const agent_runner_t *runner)
{
    return runner->is_held || runner->state >= AGENT_RUNNER_KILLED;
}

/* Credit lapses when the runner has been read, so a line that was sent in time
 * is never too late. */
static apr_time_t lapse_time(const agent_credit_queue_t *queue,
                             const agent_lease_t *lease)
{
    const agent_runner_t *runner = lease->runner;
    apr_time_t now = queue->context->now;
    apr_time_t at = lease->credit.lapse_at;

    if (!agent_runner_may_answer(queue->runners, runner)) {
        return now + (LAPSE_TIME >> lease->credit.turn->lapses);
    }
    if (runner->pong_by != AGENT_CLOCK_NEVER && at < now + ANSWER_TIME) {
        return now + ANSWER_TIME;
    }
    return at;
}

/* Credit of which a short line is left was used. */
static void lapse(agent_credit_queue_t *queue, agent_lease_t *lease)
{
    agent_credit_turn_t *turn = lease->credit.turn;

    turn->lapses += lease->credit.granted > AGENT_BATCH_LONG_LINE
        && turn->lapses < MAX_HALVING;
    take_back(queue, lease);
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
        lease->credit.lapse_at += missed;
        lease->credit.lapse_at = lapse_time(queue, lease);
        if (is_out_of_use(lease->runner)) {
            take_back(queue, lease);
        }
        else if (lease->credit.lapse_at <= now) {
            lapse(queue, lease);
        }
        else {
            expect_lapse(queue, lease);
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
    write_go(lease);
}

/* It does not wait for its own output to be committed. */
static bool is_saved(const agent_lease_t *lease)
{
    return lease->credit.unsaved <= AGENT_CREDIT_UNSAVED
        && lease->runner->state < AGENT_RUNNER_KILLED;
}

/* It waits for room in the lanes alone. */
static bool waits_for_room(const agent_lease_t *lease)
{
    return needs_room(lease) && is_saved(lease) && !lease->runner->is_held;
}

/* Finds the leases of a turn that wait for room; others that can, go on. */
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

/* The next lease of the turn; one that has no credit may always have some. */
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

static void give_room(agent_credit_queue_t *queue)
{
    agent_credit_turn_t *turn;

    while ((turn = find_turn(queue)) != NULL) {
        if (agent_credit_used(queue) + turn->next->credit.wanted
            > AGENT_BATCH_MAX_LANES) {
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
