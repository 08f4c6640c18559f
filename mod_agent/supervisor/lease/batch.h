/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runners said and is not committed yet: batches, each one call of
 * agent.save_batch, which may be repeated.
 *
 * A shared batch holds short lines of many runs and goes over the first
 * connection. What is large, or was refused together with others, is in lanes:
 * batches of one run, over the second connection. While a run has a lane all
 * that it says goes there, so its own order is kept and nobody else waits.
 */
#ifndef AGENT_SUPERVISOR_BATCH_H
#define AGENT_SUPERVISOR_BATCH_H

#include <apr_tables.h>

#include "core/buffer.h"
#include "../statement/database.h"
#include "lease.h"

/* Bounds of a shared batch and of one of a lane, in which a single line may be
 * longer; and of a line in a shared one. */
#define AGENT_BATCH_MAX_BYTES  ((apr_size_t)1024 * 1024)
#define AGENT_BATCH_LANE_BYTES ((apr_size_t)4 * 1024 * 1024)
#define AGENT_BATCH_MAX_ITEMS  500
#define AGENT_BATCH_LONG_LINE  ((apr_size_t)64 * 1024)
/* Unsaved bytes of one run, beyond which its short lines wait too. */
#define AGENT_BATCH_MAX_RUN ((apr_size_t)512 * 1024)
/* Bytes that may wait in shared batches, and in all lanes together. No runner
 * is read while the shared batches are full, or the sum of both is reached (a
 * batch that is split moves into lanes). */
#define AGENT_BATCH_MAX_SHARED ((apr_size_t)32 * 1024 * 1024)
#define AGENT_BATCH_MAX_LANES  ((apr_size_t)64 * 1024 * 1024)

typedef enum agent_item_kind_t {
    /* Waits for others: it comes with the start of each run. */
    AGENT_ITEM_METADATA,
    AGENT_ITEM_EVENT,
    AGENT_ITEM_CHECKPOINT,
    AGENT_ITEM_END
} agent_item_kind_t;

/* One run's part of a batch. */
typedef struct agent_batch_run_t {
    agent_lease_key_t key;
    char thread_id[AGENT_UUID_SIZE];
    apr_int64_t last_seq;
    /* Bytes of its lines as the runner sent them. */
    apr_size_t sent;
    bool has_end;
    /* Its items are not sent any more. */
    bool is_dead;
    /* While a batch is split: where this run's items go. */
    struct agent_batch_t *part;
} agent_batch_run_t;

typedef struct agent_item_t {
    agent_batch_run_t *run;
    /* Bytes of the line as the runner sent it. */
    apr_size_t sent;
    /* In the batch's text. */
    apr_size_t offset;
    apr_size_t length;
} agent_item_t;

typedef struct agent_batch_t {
    APR_RING_ENTRY(agent_batch_t) link;
    apr_pool_t *pool;
    /* "[item,item": what is sent, but for the last bracket. */
    agent_buffer_t text;
    apr_array_header_t *items; /* of agent_item_t */
    apr_hash_t *runs;          /* run id (36 bytes) -> agent_batch_run_t */
    /* When it is to be sent; not before retry_at. */
    apr_time_t due_at;
    apr_time_t retry_at;
    /* Of one run, over the second connection; that run's id, not terminated. */
    bool is_lane;
    const char *lane_key;
    bool is_sealed;
    /* It is in flight. */
    bool is_sent;
    bool has_dead;
    /* Times that it failed for no reason that passes by itself. */
    int failures;
} agent_batch_t;

APR_RING_HEAD(agent_batch_ring_t, agent_batch_t);
typedef struct agent_batch_ring_t agent_batch_ring_t;

typedef struct agent_batch_queue_t {
    agent_batch_ring_t waiting;
    /* Run id (36 bytes) -> the last batch of its lane. */
    apr_hash_t *lanes;
    /* Bytes of the shared batches, and of the lanes. */
    apr_size_t shared_bytes;
    apr_size_t lane_bytes;
    /* When a shared one was sent last. */
    apr_time_t sent_at;
} agent_batch_queue_t;

extern const agent_operation_t agent_batch_operation;
extern const agent_operation_t agent_lane_operation;

void agent_batch_init(agent_supervisor_t *sv);

/* Adds a line of the run (copied); numbers it when it is an event. */
void agent_batch_add(agent_supervisor_t *sv, agent_lease_t *lease,
                     agent_item_kind_t kind, const char *line,
                     apr_size_t length);

/* Asks that everything be sent soon. */
void agent_batch_hurry(agent_supervisor_t *sv);

/* Something of the run is not committed. */
bool agent_batch_has_run(const agent_supervisor_t *sv, const char *run_id);

bool agent_batch_is_empty(const agent_supervisor_t *sv);

/* So much waits that no runner may be read. */
bool agent_batch_is_full(const agent_supervisor_t *sv);

/* Whether a line of that length (without its newline) can be added: the run has
 * credit for it; or it is short and the run has less than AGENT_BATCH_MAX_RUN
 * unsaved; or the lanes have room for which no run waits. */
bool agent_batch_takes(const agent_supervisor_t *sv, const agent_lease_t *lease,
                       apr_size_t length);

/* Forgets what is unsent of this run under other leases than the one with epoch
 * (-1: under any): the database would refuse it. */
void agent_batch_forget(agent_supervisor_t *sv, const char *run_id,
                        apr_int32_t epoch);

/* Forgets all: the worker's lease is lost. Nothing may be in flight. */
void agent_batch_clear(agent_supervisor_t *sv);

/* For batch_send.c: a new batch of a lane, in the queue before `next`; and
 * making it the one to which what comes is added. */
agent_batch_t *agent_batch_make_lane(agent_supervisor_t *sv, const char *run_id,
                                     agent_batch_t *next);
void agent_batch_enter_lane(agent_supervisor_t *sv, agent_batch_t *batch);
/* For batch_send.c: takes it out of the queue and frees it. */
void agent_batch_drop(agent_supervisor_t *sv, agent_batch_t *batch);
/* For batch_send.c: begins an item of a run, a line of so many bytes; its text
 * is to be appended to batch->text, and agent_batch_close_item() ends it. */
void agent_batch_open_item(agent_batch_t *batch, const agent_batch_run_t *run,
                           apr_size_t sent);
void agent_batch_close_item(agent_supervisor_t *sv, agent_batch_t *batch);

#endif
