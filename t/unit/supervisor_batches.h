/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of a queue of output, for tests. */
#ifndef SUPERVISOR_BATCHES_H
#define SUPERVISOR_BATCHES_H

#include "supervisor_fixture.h"

#include "../../mod_agent/supervisor/lease/batch_send.h"

/* Lists all batches: the shared ones, oldest first, then those of each run with
 * dedicated ones. */
static inline apr_array_header_t *list_batches(const agent_batch_queue_t *queue)
{
    apr_array_header_t *list = apr_array_make(queue->context->pool, 8,
                                              sizeof(agent_batch_t *));
    const agent_fair_share_t *share;
    agent_batch_t *batch;

    AGENT_RING_EACH(batch, &queue->shared, agent_batch_t, link)
    {
        APR_ARRAY_PUSH(list, agent_batch_t *) = batch;
    }
    AGENT_RING_EACH(share, &queue->dedicated.runs, agent_fair_share_t, link)
    {
        AGENT_RING_EACH(batch, &share->queue, agent_batch_t, link)
        {
            APR_ARRAY_PUSH(list, agent_batch_t *) = batch;
        }
    }
    return list;
}

static inline agent_batch_t *first_batch(const agent_batch_queue_t *queue)
{
    return APR_ARRAY_IDX(list_batches(queue), 0, agent_batch_t *);
}

static inline agent_batch_t *last_batch(const agent_batch_queue_t *queue)
{
    const apr_array_header_t *list = list_batches(queue);

    return APR_ARRAY_IDX(list, list->nelts - 1, agent_batch_t *);
}

/* Kind and number of lines of each batch: " s3 d1", shared and dedicated. */
static inline const char *describe(const fixture_t *fixture)
{
    const apr_array_header_t *list = list_batches(&fixture->runs->batches);
    const char *text = "";

    for (int i = 0; i < list->nelts; i++) {
        const agent_batch_t *batch = APR_ARRAY_IDX(list, i, agent_batch_t *);

        text = apr_psprintf(list->pool, "%s%s%d", text,
                            batch->is_dedicated ? " d" : " s",
                            batch->items->nelts);
    }
    return text;
}

/* The number of runs with dedicated batches. */
static inline int count_dedicated(const agent_batch_queue_t *queue)
{
    const agent_fair_share_t *share;
    int count = 0;

    AGENT_RING_EACH(share, &queue->dedicated.runs, agent_fair_share_t, link)
    {
        count++;
    }
    return count;
}

#endif
