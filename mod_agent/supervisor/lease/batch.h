/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of runners' output that is not committed: batches, each of them one
 * call of agent.save_batch, which may be repeated (../statement/save.c).
 *
 * A shared batch has short lines of many runs and uses the control connection.
 * Long lines, and output that was refused together with others, are in
 * dedicated batches, of one run, on the output connection. While a run has one
 * all its lines go there, which keeps their order and delays no other run.
 */
#ifndef AGENT_SUPERVISOR_BATCH_H
#define AGENT_SUPERVISOR_BATCH_H

#include <apr_tables.h>

#include "../base/order.h"
#include "account_map.h"
#include "backlog.h"
#include "fair_queue.h"
#include "item.h"
#include "lease.h"
#include "patience.h"

/* Limits of a shared batch, of a dedicated one (a single line may be longer),
 * and of a line in a shared batch. */
#define AGENT_BATCH_MAX_BYTES       ((apr_size_t)256 * 1024)
#define AGENT_BATCH_DEDICATED_BYTES ((apr_size_t)4 * 1024 * 1024)
#define AGENT_BATCH_MAX_ITEMS       500
#define AGENT_BATCH_LONG_LINE       ((apr_size_t)64 * 1024)
/* The memory of a line besides its bytes, that of a run's part of a shared
 * batch, and that of a dedicated batch: they count as lines do. */
#define AGENT_BATCH_ITEM_BYTES ((apr_size_t)128)
#define AGENT_BATCH_PART_BYTES ((apr_size_t)384)
#define AGENT_BATCH_OWN_BYTES  ((apr_size_t)8 * 1024)
/* A run with fewer uncommitted bytes needs no credit for short lines. */
#define AGENT_BATCH_MAX_RUN ((apr_size_t)512 * 1024)

struct agent_batch_t {
    /* Among the shared batches, or the dedicated ones of the run. */
    APR_RING_ENTRY(agent_batch_t) link;
    apr_pool_t *pool;
    /* The lines as the runners sent them, each with a newline. */
    agent_buffer_t text;
    apr_array_header_t *items; /* of agent_item_t */
    int remaining;             /* items neither discarded nor moved */
    apr_size_t cost;           /* of these (batch_size.h) */
    apr_hash_t *runs;          /* run id (36 bytes) -> agent_batch_run_t */
    /* When it is due; it is not sent before retry_at. */
    apr_time_t due_at;
    apr_time_t retry_at;
    /* Of one run; its id, not terminated, and its share. */
    bool is_dedicated;
    const char *run_id;
    agent_fair_share_t *share;
    /* The number of a shared batch: they are sent in this order. Of a dedicated
     * one, that of the shared batch to be saved before it; 0: none. */
    apr_uint64_t number;
    apr_uint64_t after;
    apr_time_t sent_at;
    bool is_sealed;    /* no more items are added */
    bool is_sent;      /* it is in flight */
    bool is_sent_once; /* it is, or it was */
    /* Of a dedicated one: its last attempt could take half of the lease. */
    bool has_long_limit;
    /* Failures that count (../statement/save_failure.c). */
    int failures;
    /* Failures of a line alone that may have a cause outside of it. */
    agent_patience_t patience;
};

typedef struct agent_batch_queue_t {
    const agent_context_t *context;
    agent_account_map_t accounts;
    agent_faulty_table_t faulty;
    /* Oldest first; the number of the last one. */
    agent_batch_ring_t shared;
    apr_uint64_t last_number;
    agent_fair_queue_t dedicated;
    /* Run id (36 bytes) -> the last of its parts of shared batches. */
    apr_hash_t *parts;
    agent_batch_t *sent_shared; /* in flight; NULL: none */
    agent_batch_t *sent_dedicated;
    /* The shared batch to which lines are added; NULL: none. */
    agent_batch_t *open;
    /* Parts that move; some are of the next shared batch (batch_move.h). */
    int moving;
    bool is_moving;
    agent_backlog_table_t backlogs;
    /* Of shared batches; when one was sent last (core/clock.h). */
    agent_batch_size_t batch_size;
    apr_time_t sent_at;
} agent_batch_queue_t;

static inline agent_item_t *agent_batch_item(const agent_batch_t *batch,
                                             int number)
{
    return &APR_ARRAY_IDX(batch->items, number, agent_item_t);
}

void agent_batch_init(agent_batch_queue_t *queue,
                      const agent_context_t *context);

/* Adds a copy of a line of the run, and numbers it if it is an event. ack: the
 * number of the reply that it wants, which makes it due now; -1: none. */
void agent_batch_add(agent_batch_queue_t *queue, agent_lease_t *lease,
                     agent_item_kind_t kind, const char *line,
                     apr_size_t length, apr_int64_t ack);

/* Makes all batches due now. */
void agent_batch_flush(agent_batch_queue_t *queue);

/* Makes the batches with output of the run due now. */
void agent_batch_flush_run(agent_batch_queue_t *queue, const char *run_id);

/* Whether output of the run is not committed yet. */
bool agent_batch_has_run(const agent_batch_queue_t *queue, const char *run_id);

bool agent_batch_is_empty(const agent_batch_queue_t *queue);

/* Returns where a line of the run is added: DEDICATED if it is long, the run
 * has such batches, or its deployment is faulty, or slow while lines of such
 * ones fill the shared batches; else SHARED. length: without its newline. */
agent_backlog_kind_t agent_batch_find_kind(const agent_batch_queue_t *queue,
                                           const agent_lease_t *lease,
                                           apr_size_t length);

/* Whether the queue has reached its limits: no runner may be read. */
bool agent_batch_is_full(const agent_batch_queue_t *queue);

/* Discards unsent output of the run under the lease of that epoch, or 0: all
 * leases. Appends their keys to discarded (of agent_lease_key_t), or NULL. */
void agent_batch_discard(agent_batch_queue_t *queue, const char *run_id,
                         int epoch, apr_array_header_t *discarded);

/* Returns when the batch may be sent. */
static inline apr_time_t agent_batch_due(const agent_batch_t *batch,
                                         apr_time_t now)
{
    apr_time_t due = batch->is_sealed ? now : batch->due_at;

    return AGENT_MAX(due, batch->retry_at);
}

/* Removes a batch from the queue and frees it. */
void agent_batch_remove(agent_batch_queue_t *queue, agent_batch_t *batch);

/* Discards all batches: the worker's lease is lost. None may be in flight. */
void agent_batch_clear(agent_batch_queue_t *queue);

#endif
