/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make the parameters of agent.save_batch: its
 * columns, and what is known of the batch while they are made. */
#ifndef AGENT_SUPERVISOR_SAVE_PRIVATE_H
#define AGENT_SUPERVISOR_SAVE_PRIVATE_H

#include "../runner/protocol/channel.h"
#include "save_params.h"

/* In the order of the function's parameters, after the worker. */
typedef enum save_column_t {
    RUN_DEPLOYMENT,
    RUN_ID,
    RUN_EPOCH,
    RUN_BATCH,
    RUN_IS_COUNTED,
    RUN_SAVED_EVENT,
    RUN_LOCKS_THREAD,
    RUN_LAST_EVENT,
    RUN_STATUS,
    RUN_ERROR,
    RUN_IS_FAILURE,
    RUN_RESULT,
    EVENT_RUN,
    EVENT_SEQ,
    EVENT_NAME,
    EVENT_DATA,
    EVENT_CHECKPOINT,
    EVENT_PATH,
    CHECKPOINT_RUN,
    CHECKPOINT_NS,
    CHECKPOINT_ID,
    CHECKPOINT_PARENT,
    CHECKPOINT_NEXT,
    CHECKPOINT_TASKS,
    CHECKPOINT_METADATA,
    CHECKPOINT_FORMAT,
    CHANNEL_CHECKPOINT,
    CHANNEL_NAME,
    CHANNEL_KIND,
    CHANNEL_KEEP,
    CHANNEL_LENGTH,
    CHANNEL_BYTES,
    CHANNEL_CONTENT,
    CHANNEL_ELEMENTS,
    SAVE_COLUMNS
} save_column_t;

typedef struct save_params_t {
    apr_pool_t *pool;
    agent_db_column_t columns[SAVE_COLUMNS];
    apr_array_header_t *runs; /* of pointers to runs */
    apr_hash_t *by_id;        /* run id (36 bytes) -> its run */
    int checkpoints;
    /* JSON arrays, without their closing brackets. */
    agent_buffer_t records;
    agent_buffer_t task_reports;
    /* The literals of arrays that are being made. */
    agent_buffer_t literal;
    agent_buffer_t counts;
} save_params_t;

/* Appends a channel of the last checkpoint. */
void agent_save_add_channel(save_params_t *params,
                            const agent_channel_t *channel);

#endif
