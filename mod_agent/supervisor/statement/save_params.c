/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a batch as columns; see save_params.h. Each line was checked
 * when it was read (../runner/protocol/protocol.c): its members are found
 * again, and passed on as they are. The server parses nothing but the JSON that
 * it stores as such.
 */
#include "save_private.h"

#include <string.h>

#include "../runner/protocol/protocol_private.h"

/* Of agent.most_channels(). With one more the database refuses the checkpoint:
 * by their number, or else because that one has no kind. */
#define MOST_CHANNELS 1024

static const agent_db_type_t types[SAVE_COLUMNS] = {
    [RUN_DEPLOYMENT] = AGENT_DB_UUID,
    [RUN_ID] = AGENT_DB_UUID,
    [RUN_EPOCH] = AGENT_DB_INTEGER,
    [RUN_BATCH] = AGENT_DB_INTEGER,
    [RUN_IS_COUNTED] = AGENT_DB_BOOLEAN,
    [RUN_SAVED_EVENT] = AGENT_DB_BIGINT,
    [RUN_LOCKS_THREAD] = AGENT_DB_BOOLEAN,
    [RUN_LAST_EVENT] = AGENT_DB_BIGINT,
    [RUN_STATUS] = AGENT_DB_TEXT,
    [RUN_ERROR] = AGENT_DB_JSON,
    [RUN_IS_FAILURE] = AGENT_DB_BOOLEAN,
    [RUN_RESULT] = AGENT_DB_JSON,
    [EVENT_RUN] = AGENT_DB_INTEGER,
    [EVENT_SEQ] = AGENT_DB_BIGINT,
    [EVENT_NAME] = AGENT_DB_TEXT,
    [EVENT_DATA] = AGENT_DB_TEXT,
    [EVENT_CHECKPOINT] = AGENT_DB_UUID,
    [EVENT_PATH] = AGENT_DB_JSON,
    [CHECKPOINT_RUN] = AGENT_DB_INTEGER,
    [CHECKPOINT_NS] = AGENT_DB_TEXT,
    [CHECKPOINT_ID] = AGENT_DB_UUID,
    [CHECKPOINT_PARENT] = AGENT_DB_UUID,
    [CHECKPOINT_NEXT] = AGENT_DB_JSON,
    [CHECKPOINT_TASKS] = AGENT_DB_JSON,
    [CHECKPOINT_METADATA] = AGENT_DB_JSON,
    [CHECKPOINT_FORMAT] = AGENT_DB_TEXT,
    [CHANNEL_CHECKPOINT] = AGENT_DB_INTEGER,
    [CHANNEL_NAME] = AGENT_DB_TEXT,
    [CHANNEL_KIND] = AGENT_DB_TEXT,
    [CHANNEL_KEEP] = AGENT_DB_INTEGER,
    [CHANNEL_LENGTH] = AGENT_DB_INTEGER,
    [CHANNEL_BYTES] = AGENT_DB_BIGINT,
    [CHANNEL_CONTENT] = AGENT_DB_TEXT,
    [CHANNEL_ELEMENTS] = AGENT_DB_TEXT,
};

/* A run, and what its items add to its row. */
typedef struct save_run_t {
    const agent_batch_run_t *run;
    int position; /* among the runs, from 1 */
    bool locks_thread;
    bool is_failure;
    /* Of its end; zeroed without one. */
    agent_protocol_text_t status;
    agent_protocol_text_t error;
    agent_protocol_text_t result;
} save_run_t;

static void add_number(save_params_t *params, save_column_t column,
                       apr_int64_t number)
{
    agent_db_column_number(&params->columns[column], number);
}

static void add_null(save_params_t *params, save_column_t column)
{
    agent_db_column_null(&params->columns[column]);
}

/* Whether the member is there and not JSON's null. */
static bool is_given(const agent_protocol_text_t *value)
{
    return value->at != NULL && *value->at != 'n';
}

/* JSON text; null for an absent member and for JSON's null. */
static void add_json(save_params_t *params, save_column_t column,
                     const agent_protocol_text_t *value)
{
    if (is_given(value)) {
        agent_db_column_text(&params->columns[column], value->at,
                             value->length);
    }
    else {
        add_null(params, column);
    }
}

/* The content of a string without escapes; null if it is absent or null. */
static void add_word(save_params_t *params, save_column_t column,
                     const agent_protocol_text_t *value)
{
    if (is_given(value)) {
        agent_db_column_text(&params->columns[column], value->at + 1,
                             value->length - 2);
    }
    else {
        add_null(params, column);
    }
}

static void add_uuid(save_params_t *params, save_column_t column,
                     const agent_protocol_text_t *value)
{
    if (is_given(value)) {
        agent_db_column_uuid(&params->columns[column], value->at + 1);
    }
    else {
        add_null(params, column);
    }
}

static void add_event(save_params_t *params, const save_run_t *run,
                      const agent_item_t *item,
                      const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *data = &fields->value[FIELD_DATA];

    add_number(params, EVENT_RUN, run->position);
    add_number(params, EVENT_SEQ, item->seq);
    add_word(params, EVENT_NAME, &fields->value[FIELD_EVENT]);
    if (data->at != NULL) {
        agent_db_column_text(&params->columns[EVENT_DATA], data->at,
                             data->length);
    }
    else {
        add_null(params, EVENT_DATA);
    }
    add_uuid(params, EVENT_CHECKPOINT, &fields->value[FIELD_CHECKPOINT_ID]);
    add_json(params, EVENT_PATH, &fields->value[FIELD_PATH]);
}

static void add_checkpoint(save_params_t *params, const save_run_t *run,
                           const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *ns = &fields->value[FIELD_NS];
    const char *at = fields->value[FIELD_VALUES].at;
    agent_channel_t channel;

    params->checkpoints++;
    add_number(params, CHECKPOINT_RUN, run->position);
    if (is_given(ns)) {
        add_word(params, CHECKPOINT_NS, ns);
    }
    else {
        agent_db_column_text(&params->columns[CHECKPOINT_NS], "", 0);
    }
    add_uuid(params, CHECKPOINT_ID, &fields->value[FIELD_CHECKPOINT_ID]);
    add_uuid(params, CHECKPOINT_PARENT, &fields->value[FIELD_PARENT]);
    add_json(params, CHECKPOINT_NEXT, &fields->value[FIELD_NEXT]);
    add_json(params, CHECKPOINT_TASKS, &fields->value[FIELD_TASKS]);
    add_json(params, CHECKPOINT_METADATA, &fields->value[FIELD_METADATA]);
    add_word(params, CHECKPOINT_FORMAT, &fields->value[FIELD_FORMAT]);
    for (int i = 0; i <= MOST_CHANNELS && agent_channel_next(&channel, &at);
         i++) {
        if (i == MOST_CHANNELS) {
            channel.kind = AGENT_CHANNEL_WRONG;
        }
        agent_save_add_channel(params, &channel);
    }
}

/* Appends our members to those of the line. The database takes the last of
 * equal members, so a runner cannot set ours. */
static void add_message(agent_buffer_t *messages, const agent_batch_run_t *run,
                        const char *line, apr_size_t length)
{
    /* The line is an object with members, perhaps followed by white space. */
    while (line[length - 1] != '}') {
        length--;
    }
    agent_buffer_append(messages, agent_buffer_length(messages) > 0 ? "," : "[",
                        1);
    agent_buffer_append(messages, line, length - 1);
    agent_buffer_print(messages, ",\"d\":\"%s\",\"r\":\"%.36s\",\"e\":%d}",
                       run->deployment_id, run->key.run_id,
                       (int)run->key.epoch);
}

static save_run_t *find_run(save_params_t *params, const agent_batch_run_t *run)
{
    save_run_t *known = apr_hash_get(params->by_id, run->key.run_id, 36);

    if (known == NULL) {
        known = apr_pcalloc(params->pool, sizeof(*known));
        known->run = run;
        APR_ARRAY_PUSH(params->runs, save_run_t *) = known;
        known->position = params->runs->nelts;
        apr_hash_set(params->by_id, run->key.run_id, 36, known);
    }
    return known;
}

static void add_end(save_run_t *run, const agent_item_t *item,
                    const agent_protocol_fields_t *fields)
{
    run->status = fields->value[FIELD_STATUS];
    run->error = fields->value[FIELD_ERROR];
    run->result = fields->value[FIELD_VALUE];
    run->is_failure = item->kind == AGENT_ITEM_FAILURE;
}

static void add_item(save_params_t *params, const agent_batch_t *batch,
                     const agent_item_t *item)
{
    const char *line = agent_buffer_text(&batch->text) + item->offset;
    save_run_t *run = find_run(params, item->run);
    agent_protocol_fields_t fields;

    memset(&fields, 0, sizeof(fields));
    agent_protocol_collect(&fields, line);
    switch (item->kind) {
    case AGENT_ITEM_METADATA:
    case AGENT_ITEM_EVENT:
        add_event(params, run, item, &fields);
        return;
    case AGENT_ITEM_TASK:
        add_message(&params->task_reports, item->run, line, item->length);
        return;
    case AGENT_ITEM_CHECKPOINT:
        add_checkpoint(params, run, &fields);
        break;
    case AGENT_ITEM_RECORD:
        add_message(&params->records, item->run, line, item->length);
        break;
    case AGENT_ITEM_END:
    case AGENT_ITEM_FAILURE:
        add_end(run, item, &fields);
        break;
    }
    run->locks_thread = true;
}

/* seq: -1 for none. */
static void add_event_seq(save_params_t *params, save_column_t column,
                          apr_int64_t seq)
{
    if (seq >= 0) {
        add_number(params, column, seq);
    }
    else {
        add_null(params, column);
    }
}

static void add_run(save_params_t *params, const agent_lease_table_t *leases,
                    const save_run_t *run)
{
    const agent_batch_run_t *of = run->run;
    const agent_lease_t *lease = agent_lease_find(leases, &of->key);

    agent_db_column_uuid(&params->columns[RUN_DEPLOYMENT], of->deployment_id);
    agent_db_column_uuid(&params->columns[RUN_ID], of->key.run_id);
    add_number(params, RUN_EPOCH, of->key.epoch);
    /* Without a lease it has no number, and is fenced. */
    if (lease != NULL) {
        add_number(params, RUN_BATCH, lease->saved_batches + 1);
    }
    else {
        add_null(params, RUN_BATCH);
    }
    agent_db_column_boolean(&params->columns[RUN_IS_COUNTED], of->is_counted);
    add_event_seq(params, RUN_SAVED_EVENT,
                  lease != NULL ? lease->saved_seq : -1);
    agent_db_column_boolean(&params->columns[RUN_LOCKS_THREAD],
                            run->locks_thread);
    add_event_seq(params, RUN_LAST_EVENT, of->last_seq);
    add_word(params, RUN_STATUS, &run->status);
    add_json(params, RUN_ERROR, &run->error);
    agent_db_column_boolean(&params->columns[RUN_IS_FAILURE], run->is_failure);
    add_json(params, RUN_RESULT, &run->result);
}

/* NULL when there is no message. */
static const char *end_messages(agent_buffer_t *messages)
{
    if (agent_buffer_length(messages) == 0) {
        return NULL;
    }
    agent_buffer_append(messages, "]", 1);
    return agent_buffer_text(messages);
}

static void end_params(agent_db_params_t *out, const char *worker_id,
                       save_params_t *params)
{
    const char **values = apr_pcalloc(params->pool,
                                      AGENT_SAVE_PARAMS * sizeof(*values));
    int *lengths = apr_pcalloc(params->pool,
                               AGENT_SAVE_PARAMS * sizeof(*lengths));
    int *formats = apr_pcalloc(params->pool,
                               AGENT_SAVE_PARAMS * sizeof(*formats));

    values[0] = worker_id;
    for (int i = 0; i < SAVE_COLUMNS; i++) {
        values[i + 1] = agent_db_column_end(&params->columns[i],
                                            &lengths[i + 1]);
        formats[i + 1] = 1;
    }
    values[SAVE_COLUMNS + 1] = end_messages(&params->records);
    values[SAVE_COLUMNS + 2] = end_messages(&params->task_reports);
    *out = (agent_db_params_t){values, lengths, formats};
}

void agent_save_params_make(agent_db_params_t *params, const char *worker_id,
                            const agent_lease_table_t *leases,
                            const agent_batch_t *batch, apr_pool_t *pool)
{
    save_params_t *made = apr_pcalloc(pool, sizeof(*made));

    made->pool = pool;
    made->runs = apr_array_make(pool, 16, sizeof(save_run_t *));
    made->by_id = apr_hash_make(pool);
    for (int i = 0; i < SAVE_COLUMNS; i++) {
        agent_db_column_init(&made->columns[i], types[i], pool);
    }
    agent_buffer_init(&made->records, pool);
    agent_buffer_init(&made->task_reports, pool);
    agent_buffer_init(&made->literal, pool);
    agent_buffer_init(&made->counts, pool);
    for (int i = 0; i < batch->items->nelts; i++) {
        const agent_item_t *item = agent_batch_item(batch, i);

        if (!item->run->is_discarded) {
            add_item(made, batch, item);
        }
    }
    for (int i = 0; i < made->runs->nelts; i++) {
        add_run(made, leases, APR_ARRAY_IDX(made->runs, i, save_run_t *));
    }
    end_params(params, worker_id, made);
}
