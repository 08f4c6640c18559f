/* SPDX-License-Identifier: Apache-2.0 */
/* Moves lines from shared batches; see batch_move.h. */
#include "batch_move.h"

#include "../../core/clock.h"
#include "batch_private.h"
#include "batch_send.h"

/* The memory that an iteration of the loop moves, and the rest of a batch. */
#define MOVED_AT_ONCE ((apr_size_t)512 * 1024)

/* The first dedicated batch of the run with later lines than the shared one
 * has; NULL: none. */
static agent_batch_t *find_later(const agent_batch_queue_t *queue,
                                 const agent_batch_run_t *run)
{
    agent_batch_t *batch = agent_fair_queue_first_of(&queue->dedicated,
                                                     run->key.run_id);

    while (batch != NULL && batch->after < run->batch->number) {
        batch = agent_fair_queue_next_of(batch);
    }
    return batch;
}

/* The last dedicated batch of the run before that one; NULL: none. */
static agent_batch_t *find_earlier(const agent_batch_queue_t *queue,
                                   const agent_batch_run_t *run,
                                   const agent_batch_t *later)
{
    return later != NULL
        ? agent_fair_queue_previous_of(later)
        : agent_fair_queue_last_of(&queue->dedicated, run->key.run_id);
}

void agent_batch_move_run(agent_batch_queue_t *queue, agent_batch_t *batch,
                          agent_batch_run_t *run)
{
    agent_batch_t *later = find_later(queue, run);
    agent_batch_t *to = find_earlier(queue, run, later);

    if (to == NULL
        || !agent_batch_has_room(queue, to, run->items, run->line_bytes)) {
        to = agent_batch_make_dedicated(queue, run, later, 0);
    }
    for (int i = run->first; i >= 0; i = agent_batch_item(batch, i)->next) {
        agent_batch_copy(queue, to, run, batch, i);
    }
    /* If these lines were sent they keep their number, which says nothing of
     * lines that are added. */
    to->is_sealed |= batch->is_sent_once;
    agent_batch_discard_run(queue, batch, run);
}

/* The run moves with all its lines from this part on, which follow each other.
 */
static bool may_move(const agent_batch_queue_t *queue,
                     const agent_batch_run_t *run)
{
    const agent_batch_run_t *last = apr_hash_get(queue->parts, run->key.run_id,
                                                 36);

    return agent_backlog_may_move(&queue->backlogs, run->deployment_id,
                                  AGENT_BATCH_OWN_BYTES + last->memory
                                      + last->memory_before
                                      - run->memory_before);
}

static void mark(agent_batch_queue_t *queue, agent_batch_run_t *run)
{
    if (!run->batch->is_sent && !run->is_moving && !run->is_discarded) {
        run->is_moving = true;
        queue->moving++;
        agent_backlog_remove(&queue->backlogs, run->deployment_id,
                             AGENT_BACKLOG_COST, run->cost);
    }
}

/* Of the parts of a run that are marked only the first one may have to stay. */
static void mark_all(agent_batch_queue_t *queue, const char *run_id)
{
    agent_batch_t *first = agent_batch_send_first_shared(queue);
    agent_batch_run_t *run = apr_hash_get(queue->parts, run_id, 36);

    for (; run != NULL && !run->is_moving; run = run->earlier) {
        mark(queue, run);
    }
    run = first != NULL ? apr_hash_get(first->runs, run_id, 36) : NULL;
    if (run != NULL) {
        mark(queue, run);
    }
}

void agent_batch_move_runs(agent_batch_queue_t *queue, apr_hash_t *runs)
{
    apr_hash_index_t *at = apr_hash_first(apr_hash_pool_get(runs), runs);

    for (; at != NULL; at = apr_hash_next(at)) {
        mark_all(queue, apr_hash_this_key(at));
    }
}

/* Deployment id -> the cost of its lines in the batch. */
static apr_hash_t *sum_costs(const agent_batch_t *batch)
{
    apr_hash_t *sums = apr_hash_make(batch->pool);
    apr_hash_index_t *at = apr_hash_first(batch->pool, batch->runs);

    for (; at != NULL; at = apr_hash_next(at)) {
        const agent_batch_run_t *run = apr_hash_this_val(at);
        apr_size_t *sum = apr_hash_get(sums, run->deployment_id,
                                       APR_HASH_KEY_STRING);

        if (sum == NULL) {
            sum = apr_pcalloc(batch->pool, sizeof(*sum));
            apr_hash_set(sums, run->deployment_id, APR_HASH_KEY_STRING, sum);
        }
        *sum += run->is_discarded ? 0 : run->cost;
    }
    return sums;
}

static void mark_deployments(agent_batch_queue_t *queue,
                             const agent_batch_t *batch,
                             apr_interval_time_t elapsed)
{
    apr_size_t cost = batch->cost;
    apr_hash_index_t *at = apr_hash_first(batch->pool, sum_costs(batch));

    for (; at != NULL; at = apr_hash_next(at)) {
        const apr_size_t *part = apr_hash_this_val(at);

        if (agent_batch_size_is_slow(*part, cost, elapsed)) {
            agent_backlog_set_slow(
                &queue->backlogs, apr_hash_this_key(at),
                (apr_size_t)((double)cost * (double)AGENT_BATCH_SIZE_TARGET
                             / (double)elapsed));
        }
    }
}

/* Adds the runs whose lines in shared batches that are not in flight have more
 * than `cost`. Keys are borrowed from the batches. */
static void find_large(const agent_batch_queue_t *queue, apr_size_t cost,
                       apr_hash_t *runs, apr_pool_t *pool)
{
    apr_hash_index_t *at = apr_hash_first(pool, queue->parts);

    for (; at != NULL; at = apr_hash_next(at)) {
        const agent_batch_run_t *last = apr_hash_this_val(at);
        const agent_batch_run_t *run = last;
        apr_size_t sum = 0;

        for (; run != NULL && sum <= cost; run = run->earlier) {
            sum += run->batch->is_sent ? 0 : run->cost;
        }
        if (sum > cost) {
            apr_hash_set(runs, last->key.run_id, 36, last);
        }
    }
}

static void mark_runs(agent_batch_queue_t *queue,
                      const agent_lease_table_t *leases,
                      const agent_batch_t *batch, apr_interval_time_t elapsed)
{
    apr_hash_t *slow = apr_hash_make(batch->pool);
    apr_hash_index_t *at = apr_hash_first(batch->pool, batch->runs);

    for (; at != NULL; at = apr_hash_next(at)) {
        const agent_batch_run_t *run = apr_hash_this_val(at);
        agent_lease_t *lease = agent_lease_find(leases, &run->key);

        if (lease != NULL && !run->is_discarded
            && agent_batch_size_is_slow(run->cost, batch->cost, elapsed)) {
            agent_batch_size_dedicate(&lease->batch_size, queue->context->now);
            apr_hash_set(slow, run->key.run_id, 36, run);
        }
    }
    if (apr_hash_count(slow) > 0) {
        find_large(queue, AGENT_BATCH_SIZE_FIRST, slow, batch->pool);
        agent_batch_move_runs(queue, slow);
    }
}

void agent_batch_move_mark_slow(agent_batch_queue_t *queue,
                                const agent_lease_table_t *leases,
                                const agent_batch_t *batch,
                                apr_interval_time_t elapsed)
{
    if (agent_batch_size_is_slow(batch->cost, batch->cost, elapsed)) {
        mark_deployments(queue, batch, elapsed);
        mark_runs(queue, leases, batch, elapsed);
    }
}

/* A run whose earlier lines are in a dedicated batch keeps their order. */
static bool has_to_move(const agent_batch_queue_t *queue,
                        const agent_batch_run_t *run)
{
    const agent_batch_t *first = agent_fair_queue_first_of(&queue->dedicated,
                                                           run->key.run_id);

    return (first != NULL && first->after < run->batch->number)
        || ((run->is_moving
             || agent_faulty_is(&queue->faulty, run->deployment_id))
            && may_move(queue, run));
}

/* Its deployment has no room for it. */
static void stay(agent_batch_queue_t *queue, agent_batch_run_t *run)
{
    if (run->is_moving) {
        run->is_moving = false;
        queue->moving--;
        agent_backlog_add(&queue->backlogs, run->deployment_id,
                          AGENT_BACKLOG_COST, run->cost);
    }
}

/* Lines of slow deployments leave run by run, since those of a run that follow
 * have to leave too. */
static void move_slow(agent_batch_queue_t *queue, const agent_batch_t *batch)
{
    for (int i = 0;
         i < batch->items->nelts && agent_backlog_is_any_slow(&queue->backlogs);
         i++) {
        const agent_batch_run_t *run = agent_batch_item(batch, i)->run;

        if (i == run->first && !run->is_discarded
            && agent_backlog_is_slow(&queue->backlogs, run->deployment_id)
            && may_move(queue, run)) {
            mark_all(queue, run->key.run_id);
        }
    }
}

/* Returns the memory that was moved. */
static apr_size_t move_lines(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    apr_size_t bytes = 0;

    move_slow(queue, batch);
    for (int i = 0; i < batch->items->nelts; i++) {
        agent_batch_run_t *run = agent_batch_item(batch, i)->run;

        if (i != run->first || run->is_discarded) {
            continue;
        }
        if (has_to_move(queue, run)) {
            bytes += run->memory + AGENT_BATCH_OWN_BYTES;
            agent_batch_move_run(queue, batch, run);
        }
        else {
            stay(queue, run);
        }
    }
    return bytes;
}

apr_time_t agent_batch_move_step(agent_batch_queue_t *queue)
{
    apr_size_t moved = 0;
    agent_batch_t *batch = agent_batch_send_first_shared(queue);

    queue->is_moving = false;
    if (agent_fair_queue_is_empty(&queue->dedicated) && queue->moving == 0
        && queue->faulty.until <= queue->context->now
        && !agent_backlog_is_any_slow(&queue->backlogs)) {
        return AGENT_CLOCK_NEVER;
    }
    while (batch != NULL && !batch->is_sent) {
        if (moved >= MOVED_AT_ONCE) {
            queue->is_moving = true;
            return queue->context->now;
        }
        moved += move_lines(queue, batch);
        if (!agent_batch_remove_if_empty(queue, batch)) {
            break;
        }
        batch = agent_batch_send_first_shared(queue);
    }
    return AGENT_CLOCK_NEVER;
}
