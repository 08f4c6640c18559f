/* SPDX-License-Identifier: Apache-2.0 */
/* Splits batches by run and by cost; see batch_split.h. */
#include "batch_split.h"

#include <apr_strings.h>

#include "batch_move.h"
#include "batch_private.h"

void agent_batch_split_by_run(agent_batch_queue_t *queue, agent_batch_t *batch)
{
    for (int i = 0; i < batch->items->nelts; i++) {
        agent_batch_run_t *run = agent_batch_item(batch, i)->run;

        if (!run->is_discarded) {
            agent_batch_move_run(queue, batch, run);
        }
    }
    agent_batch_remove(queue, batch);
}

/* The number of items, at least 1, from the first one on, that have at most the
 * cost together. */
static int count_items(const agent_batch_t *batch, int first, apr_size_t cost)
{
    apr_size_t sum = 0;
    int i = first;

    for (; i < batch->items->nelts; i++) {
        sum += agent_batch_size_cost(1, agent_batch_item(batch, i)->length + 1);
        if (sum > cost && i > first) {
            break;
        }
    }
    return i - first;
}

/* The number of the last record before the batch. */
static apr_int64_t records_before(const agent_batch_t *batch)
{
    apr_int64_t last = agent_batch_item(batch, 0)->run->last_record;

    for (int i = 0; i < batch->items->nelts; i++) {
        last -= agent_batch_item(batch, i)->kind == AGENT_ITEM_RECORD;
    }
    return last;
}

/* Copies items into a new batch before theirs. run: as it is before them, then
 * after them. */
static agent_batch_t *copy_items(agent_batch_queue_t *queue,
                                 agent_batch_t *batch, int first, int count,
                                 agent_batch_run_t *run)
{
    agent_batch_t *part = agent_batch_make_dedicated(queue, run, batch,
                                                     batch->after);

    for (int i = first; i < first + count; i++) {
        const agent_item_t *item = agent_batch_item(batch, i);

        run->has_end = agent_item_is_end(item->kind);
        run->last_seq = item->seq;
        run->last_record += item->kind == AGENT_ITEM_RECORD;
        agent_batch_copy(queue, part, run, batch, i);
    }
    return part;
}

agent_batch_t *agent_batch_split_by_cost(agent_batch_queue_t *queue,
                                         agent_batch_t *batch, apr_size_t cost)
{
    agent_batch_run_t run = *agent_batch_item(batch, 0)->run;
    agent_batch_t *head = NULL;
    agent_batch_t *part = NULL;
    int count = count_items(batch, 0, cost);

    if (count == batch->items->nelts) {
        return batch;
    }
    run.last_record = records_before(batch);
    for (int first = 0; first < batch->items->nelts; first += count) {
        count = count_items(batch, first, cost);
        part = copy_items(queue, batch, first, count, &run);
        head = head != NULL ? head : part;
        /* Only the last part gets later lines of the run. */
        part->is_sealed = first + count < batch->items->nelts
            || batch->is_sealed;
        cost *= 2;
    }
    agent_batch_remove(queue, batch);
    return head;
}
