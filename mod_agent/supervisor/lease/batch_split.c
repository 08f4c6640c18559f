/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are split, by run or by weight; see batch_split.h. */
#include "batch_split.h"

#include <apr_strings.h>

#include "batch_private.h"

/* Copies the lines of each of these runs into a dedicated batch before this
 * one. */
static void copy_lines(agent_batch_queue_t *queue, agent_batch_t *batch,
                       apr_hash_t *runs)
{
    const char *text = agent_buffer_text(&batch->text);

    for (int i = 0; i < batch->items->nelts; i++) {
        const agent_item_t *item = &APR_ARRAY_IDX(batch->items, i,
                                                  agent_item_t);
        agent_batch_run_t *run = item->run;

        if (run->is_dead || apr_hash_get(runs, run->key.run_id, 36) == NULL) {
            continue;
        }
        if (run->part == NULL) {
            run->part = agent_batch_make_dedicated(queue, run->key.run_id,
                                                   run->deployment_id, batch);
        }
        agent_batch_append(queue, run->part, run, item, text + item->offset);
    }
}

/* The lines that were copied are no longer sent with the batch. */
static void end_move(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    for (int i = 0; i < batch->items->nelts; i++) {
        agent_batch_run_t *run = APR_ARRAY_IDX(batch->items, i, agent_item_t)
                                     .run;

        if (run->part != NULL) {
            /* It may get other lines of the run when its dedicated batches have
             * ended. */
            batch->is_sealed = true;
            batch->has_dead = true;
            run->is_dead = true;
        }
    }
    agent_batch_drop_if_dead(queue, batch);
}

/* Moves lines from the shared batches from this one on; one in flight has no
 * later lines than those after it. */
static void move_from(agent_batch_queue_t *queue, agent_batch_t *batch,
                      apr_hash_t *runs)
{
    agent_batch_t *next;

    for (; batch != APR_RING_SENTINEL(&queue->waiting, agent_batch_t, link);
         batch = next) {
        next = APR_RING_NEXT(batch, link);
        if (!batch->is_dedicated && !batch->is_sent) {
            copy_lines(queue, batch, runs);
            end_move(queue, batch);
        }
    }
    AGENT_RING_EACH(batch, &queue->waiting, agent_batch_t, link)
    {
        if (batch->is_dedicated) {
            agent_batch_enter_dedicated(queue, batch);
        }
    }
}

void agent_batch_split(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    agent_batch_t *later = APR_RING_NEXT(batch, link);

    copy_lines(queue, batch, batch->runs);
    move_from(queue, later, batch->runs);
    agent_batch_drop(queue, batch);
}

/* Adds the weight of each run's part of the batch to its sum. */
static void sum_weights(const agent_batch_t *batch, apr_hash_t *sums,
                        apr_pool_t *pool)
{
    apr_hash_index_t *at = apr_hash_first(pool, batch->runs);

    for (; at != NULL; at = apr_hash_next(at)) {
        const agent_batch_run_t *run = apr_hash_this_val(at);
        apr_size_t *sum = apr_hash_get(sums, run->key.run_id, 36);

        if (sum == NULL) {
            sum = apr_pcalloc(pool, sizeof(*sum));
            apr_hash_set(sums, apr_pmemdup(pool, run->key.run_id, 36), 36, sum);
        }
        *sum += run->is_dead ? 0 : run->weight;
    }
}

void agent_batch_find_large(const agent_batch_queue_t *queue, apr_size_t weight,
                            apr_hash_t *runs, apr_pool_t *pool)
{
    apr_hash_t *sums = apr_hash_make(pool);
    const agent_batch_t *batch;
    apr_hash_index_t *at;

    AGENT_RING_EACH(batch, &queue->waiting, agent_batch_t, link)
    {
        if (!batch->is_dedicated && !batch->is_sent) {
            sum_weights(batch, sums, pool);
        }
    }
    for (at = apr_hash_first(pool, sums); at != NULL; at = apr_hash_next(at)) {
        const apr_size_t *sum = apr_hash_this_val(at);

        if (*sum > weight) {
            apr_hash_set(runs, apr_hash_this_key(at), 36, sum);
        }
    }
}

void agent_batch_move(agent_batch_queue_t *queue, apr_hash_t *runs)
{
    if (!agent_batch_is_empty(queue)) {
        move_from(queue, APR_RING_FIRST(&queue->waiting), runs);
    }
}

/* How many of its items from the first one on have that weight together, at
 * least 1. */
static int count_items(const agent_batch_t *batch, int first, apr_size_t weight)
{
    apr_size_t sum = 0;
    int i = first;

    for (; i < batch->items->nelts; i++) {
        sum += agent_pace_weigh(
            1, APR_ARRAY_IDX(batch->items, i, agent_item_t).length + 1);
        if (sum > weight && i > first) {
            break;
        }
    }
    return i - first;
}

/* The number of the last record before the batch. */
static apr_int64_t records_before(const agent_batch_t *batch)
{
    apr_int64_t last = APR_ARRAY_IDX(batch->items, 0, agent_item_t)
                           .run->last_record;

    for (int i = 0; i < batch->items->nelts; i++) {
        last -= APR_ARRAY_IDX(batch->items, i, agent_item_t).kind
            == AGENT_ITEM_RECORD;
    }
    return last;
}

/* Copies items into a new batch before theirs. run: as it is before them, then
 * after them. */
static agent_batch_t *copy_items(agent_batch_queue_t *queue,
                                 agent_batch_t *batch, int first, int count,
                                 agent_batch_run_t *run)
{
    const char *text = agent_buffer_text(&batch->text);
    agent_batch_t *piece = agent_batch_make_dedicated(
        queue, run->key.run_id, run->deployment_id, batch);

    for (int i = first; i < first + count; i++) {
        const agent_item_t *item = &APR_ARRAY_IDX(batch->items, i,
                                                  agent_item_t);

        run->has_end = item->kind == AGENT_ITEM_END
            || item->kind == AGENT_ITEM_FAILURE;
        run->last_seq = item->seq;
        run->last_record += item->kind == AGENT_ITEM_RECORD;
        agent_batch_append(queue, piece, run, item, text + item->offset);
    }
    return piece;
}

agent_batch_t *agent_batch_cut(agent_batch_queue_t *queue, agent_batch_t *batch,
                               apr_size_t weight)
{
    agent_batch_run_t run = *APR_ARRAY_IDX(batch->items, 0, agent_item_t).run;
    bool is_last = apr_hash_get(queue->dedicated, batch->run_id, 36) == batch;
    agent_batch_t *head = NULL;
    agent_batch_t *piece = NULL;
    int count = count_items(batch, 0, weight);

    if (count == batch->items->nelts) {
        return batch;
    }
    run.last_record = records_before(batch);
    for (int first = 0; first < batch->items->nelts; first += count) {
        count = count_items(batch, first, weight);
        piece = copy_items(queue, batch, first, count, &run);
        head = head != NULL ? head : piece;
        /* Only the last piece gets later lines of the run. */
        piece->is_sealed = first + count < batch->items->nelts
            || batch->is_sealed;
        weight *= 2;
    }
    if (is_last) {
        agent_batch_enter_dedicated(queue, piece);
    }
    agent_batch_drop(queue, batch);
    return head;
}
