/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that are split, by run or by weight; see batch_split.h. */
#include "batch_split.h"

#include <apr_strings.h>

#include "batch_move.h"
#include "batch_private.h"

void agent_batch_split(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    for (int i = 0; i < batch->items->nelts; i++) {
        agent_batch_run_t *run = APR_ARRAY_IDX(batch->items, i, agent_item_t)
                                     .run;

        if (!run->is_dead) {
            agent_batch_move_run(queue, batch, run);
        }
    }
    agent_batch_drop(queue, batch);
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
    agent_batch_t *piece = agent_batch_make_dedicated(queue, run, batch,
                                                      batch->place.after);

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
