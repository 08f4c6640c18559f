/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a batch, and the part of a batch that one run has; batch.h. */
#ifndef AGENT_SUPERVISOR_ITEM_H
#define AGENT_SUPERVISOR_ITEM_H

#include "lease.h"

/* METADATA: the first event of an attempt, which does not make the batch due.
 * FAILURE: an end by this worker. */
typedef enum agent_item_kind_t {
    AGENT_ITEM_METADATA,
    AGENT_ITEM_EVENT,
    AGENT_ITEM_TASK,
    AGENT_ITEM_CHECKPOINT,
    AGENT_ITEM_RECORD,
    AGENT_ITEM_END,
    AGENT_ITEM_FAILURE
} agent_item_kind_t;

/* One run's part of a batch. */
typedef struct agent_batch_run_t agent_batch_run_t;
struct agent_batch_run_t {
    agent_lease_key_t key;
    char deployment_id[AGENT_UUID_SIZE];
    char thread_id[AGENT_UUID_SIZE];
    apr_int64_t last_seq;
    apr_int64_t last_record;
    /* Bytes of its lines as the runner sent them, newlines included. */
    apr_size_t line_bytes;
    /* The memory that counts for them (batch.h). */
    apr_size_t memory;
    /* Of a shared batch: that of the run's parts before, the saved ones
     * included, since the first of those that wait together. */
    apr_size_t memory_before;
    /* Of these, of a dedicated batch: lines of up to AGENT_CREDIT_MEDIUM. */
    apr_size_t medium_bytes;
    apr_size_t cost; /* estimated (batch_size.h) */
    /* The number of its items; the positions of the first and the last one. */
    int items;
    int first;
    int last;
    bool has_end;
    bool is_counted; /* it has more than events: it has a number (save_params.h)
                      */
    bool is_saved;   /* it is committed */
    /* Its items were discarded or moved: they are not sent. */
    bool is_discarded;
    /* They move to a dedicated batch when this shared one is next. */
    bool is_moving;
    /* Of a shared batch: the run's parts of earlier and later ones. */
    struct agent_batch_t *batch;
    agent_batch_run_t *earlier;
    agent_batch_run_t *later;
};

typedef struct agent_item_t {
    agent_batch_run_t *run;
    agent_item_kind_t kind;
    /* EVENT, METADATA: its number within the run. */
    apr_int64_t seq;
    /* The runner's number for the reply to it; -1: it wants none. */
    apr_int64_t ack;
    /* The line in the batch's text, without its newline. */
    apr_size_t offset;
    apr_size_t length;
    int next; /* position of the run's next item; -1: none */
} agent_item_t;

static inline bool agent_item_is_event(agent_item_kind_t kind)
{
    return kind == AGENT_ITEM_METADATA || kind == AGENT_ITEM_EVENT;
}

/* Whether the run ends with an item of this kind. */
static inline bool agent_item_is_end(agent_item_kind_t kind)
{
    return kind == AGENT_ITEM_END || kind == AGENT_ITEM_FAILURE;
}

#endif
