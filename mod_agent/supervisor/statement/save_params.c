/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a batch as columns; see save_params.h. Each line was checked
 * when it was read (../runner/protocol.c): its members are found again, and
 * passed on as they are. The server parses nothing but the JSON that it stores
 * as such.
 */
#include "save_params.h"

#include <string.h>

#include "../runner/channel.h"
#include "../runner/protocol_private.h"

/* In the order of the function's parameters, after the worker. */
enum {
    RUN_DEPLOYMENT,
    RUN_ID,
    RUN_EPOCH,
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
    COLUMNS
};

static const agent_db_type_t types[COLUMNS] = {
    [RUN_DEPLOYMENT] = AGENT_DB_UUID,
    [RUN_ID] = AGENT_DB_UUID,
    [RUN_EPOCH] = AGENT_DB_INTEGER,
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
};

/* A run, and what its items add to its row. */
typedef struct save_run_t {
    const agent_batch_run_t *run;
    int position; /* among the runs, from 1 */
    bool locks_thread;
    bool has_event;
    bool is_failure;
    /* Of its end; zeroed without one. */
    agent_protocol_text_t status;
    agent_protocol_text_t error;
    agent_protocol_text_t result;
} save_run_t;

typedef struct save_params_t {
    apr_pool_t *pool;
    agent_db_column_t columns[COLUMNS];
    apr_array_header_t *runs; /* of save_run_t * */
    apr_hash_t *by_id;        /* run id (36 bytes) -> save_run_t */
    int checkpoints;
    /* JSON arrays, without their closing brackets. */
    agent_buffer_t records;
    agent_buffer_t task_reports;
    /* The literal of an array that is being made. */
    agent_buffer_t literal;
} save_params_t;

static agent_db_column_t *column_of(save_params_t *params, int column)
{
    return &params->columns[column];
}

static bool is_given(const agent_protocol_text_t *value)
{
    return value->at != NULL && *value->at != 'n';
}

/* JSON text; null for an absent member and for JSON's null. */
static void add_json(save_params_t *params, int column,
                     const agent_protocol_text_t *value)
{
    if (is_given(value)) {
        agent_db_column_text(column_of(params, column), value->at,
                             value->length);
    }
    else {
        agent_db_column_null(column_of(params, column));
    }
}

/* The content of a string without escapes; null if it is absent or null. */
static void add_word(save_params_t *params, int column,
                     const agent_protocol_text_t *value)
{
    if (is_given(value)) {
        agent_db_column_text(column_of(params, column), value->at + 1,
                             value->length - 2);
    }
    else {
        agent_db_column_null(column_of(params, column));
    }
}

static void add_uuid(save_params_t *params, int column,
                     const agent_protocol_text_t *value)
{
    if (is_given(value)) {
        agent_db_column_uuid(column_of(params, column), value->at + 1);
    }
    else {
        agent_db_column_null(column_of(params, column));
    }
}

static void add_number(save_params_t *params, int column, apr_int64_t number)
{
    agent_db_column_number(column_of(params, column), number);
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
        agent_db_column_text(column_of(params, EVENT_DATA), data->at,
                             data->length);
    }
    else {
        agent_db_column_null(column_of(params, EVENT_DATA));
    }
    add_uuid(params, EVENT_CHECKPOINT, &fields->value[FIELD_CHECKPOINT_ID]);
    add_json(params, EVENT_PATH, &fields->value[FIELD_PATH]);
}

/* Appends an element to the literal, whose first byte is its brace. */
static void add_element(agent_buffer_t *literal, const char *text,
                        apr_size_t length)
{
    char *start = agent_buffer_reserve(literal, 2 * length + 3);
    char *out = start;

    if (agent_buffer_length(literal) > 1) {
        *out++ = ',';
    }
    *out++ = '"';
    for (apr_size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\') {
            *out++ = '\\';
        }
        *out++ = text[i];
    }
    *out++ = '"';
    agent_buffer_commit(literal, (apr_size_t)(out - start));
}

static int count_elements(agent_raw_t list)
{
    agent_raw_t element;
    const char *at = list.text;
    int count = 0;

    while (agent_element_next(&element, &at)) {
        count++;
    }
    return count;
}

/*
 * The elements of a list become texts of their own when they average at least
 * 64 bytes, about what a row costs; else one text has all of them. Returns the
 * bytes of the texts, each with one for what separates it from the next.
 */
static apr_int64_t add_elements(agent_buffer_t *literal, agent_raw_t list,
                                int count)
{
    agent_raw_t element;
    const char *at = list.text;
    apr_int64_t bytes = 0;

    if (list.length < (apr_size_t)64 * (apr_size_t)count) {
        add_element(literal, list.text + 1, list.length - 2);
        return (apr_int64_t)list.length - 1;
    }
    while (agent_element_next(&element, &at)) {
        add_element(literal, element.text, element.length);
        bytes += (apr_int64_t)element.length + 1;
    }
    return bytes;
}

static void add_content(save_params_t *params, const agent_channel_t *channel)
{
    bool is_list = channel->kind == AGENT_CHANNEL_ARRAY
        || channel->kind == AGENT_CHANNEL_LIST;
    apr_int64_t bytes = 0;

    agent_buffer_clear(&params->literal);
    agent_buffer_append(&params->literal, "{", 1);
    if (is_list) {
        int count = count_elements(channel->content);

        add_number(params, CHANNEL_LENGTH, count);
        bytes = add_elements(&params->literal, channel->content, count);
    }
    else {
        agent_db_column_null(column_of(params, CHANNEL_LENGTH));
        if (channel->kind == AGENT_CHANNEL_VALUE) {
            add_element(&params->literal, channel->content.text,
                        channel->content.length);
            bytes = (apr_int64_t)channel->content.length + 1;
        }
    }
    agent_buffer_append(&params->literal, "}", 1);
    add_number(params, CHANNEL_BYTES, bytes);
    agent_db_column_text(column_of(params, CHANNEL_CONTENT),
                         agent_buffer_text(&params->literal),
                         agent_buffer_length(&params->literal));
}

static void add_channel(save_params_t *params, const agent_channel_t *channel)
{
    static const char *const kinds[] = {
        [AGENT_CHANNEL_VALUE] = "value",
        [AGENT_CHANNEL_ARRAY] = "array",
        [AGENT_CHANNEL_LIST] = "list",
        [AGENT_CHANNEL_SAME] = "same",
    };
    const char *name = agent_member_key(&channel->member, params->pool);
    const char *kind = kinds[channel->kind];

    add_number(params, CHANNEL_CHECKPOINT, params->checkpoints);
    agent_db_column_text(column_of(params, CHANNEL_NAME), name, strlen(name));
    if (kind != NULL) {
        agent_db_column_text(column_of(params, CHANNEL_KIND), kind,
                             strlen(kind));
    }
    else {
        /* The database refuses it, and the run ends in error. */
        agent_db_column_null(column_of(params, CHANNEL_KIND));
    }
    if (channel->kind == AGENT_CHANNEL_LIST) {
        add_number(params, CHANNEL_KEEP, channel->keep);
    }
    else {
        agent_db_column_null(column_of(params, CHANNEL_KEEP));
    }
    add_content(params, channel);
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
        agent_db_column_text(column_of(params, CHECKPOINT_NS), "", 0);
    }
    add_uuid(params, CHECKPOINT_ID, &fields->value[FIELD_CHECKPOINT_ID]);
    add_uuid(params, CHECKPOINT_PARENT, &fields->value[FIELD_PARENT]);
    add_json(params, CHECKPOINT_NEXT, &fields->value[FIELD_NEXT]);
    add_json(params, CHECKPOINT_TASKS, &fields->value[FIELD_TASKS]);
    add_json(params, CHECKPOINT_METADATA, &fields->value[FIELD_METADATA]);
    add_word(params, CHECKPOINT_FORMAT, &fields->value[FIELD_FORMAT]);
    while (agent_channel_next(&channel, &at)) {
        add_channel(params, &channel);
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
        run->has_event = true;
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

static void add_run(save_params_t *params, const save_run_t *run)
{
    const agent_batch_run_t *of = run->run;

    agent_db_column_uuid(column_of(params, RUN_DEPLOYMENT), of->deployment_id);
    agent_db_column_uuid(column_of(params, RUN_ID), of->key.run_id);
    add_number(params, RUN_EPOCH, of->key.epoch);
    agent_db_column_boolean(column_of(params, RUN_LOCKS_THREAD),
                            run->locks_thread);
    if (run->has_event) {
        add_number(params, RUN_LAST_EVENT, of->last_seq);
    }
    else {
        agent_db_column_null(column_of(params, RUN_LAST_EVENT));
    }
    add_word(params, RUN_STATUS, &run->status);
    add_json(params, RUN_ERROR, &run->error);
    agent_db_column_boolean(column_of(params, RUN_IS_FAILURE), run->is_failure);
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
    for (int i = 0; i < COLUMNS; i++) {
        values[i + 1] = agent_db_column_end(&params->columns[i],
                                            &lengths[i + 1]);
        formats[i + 1] = 1;
    }
    values[COLUMNS + 1] = end_messages(&params->records);
    values[COLUMNS + 2] = end_messages(&params->task_reports);
    *out = (agent_db_params_t){values, lengths, formats};
}

void agent_save_make_params(agent_db_params_t *params, const char *worker_id,
                            const agent_batch_t *batch, apr_pool_t *pool)
{
    save_params_t *made = apr_pcalloc(pool, sizeof(*made));

    made->pool = pool;
    made->runs = apr_array_make(pool, 16, sizeof(save_run_t *));
    made->by_id = apr_hash_make(pool);
    for (int i = 0; i < COLUMNS; i++) {
        agent_db_column_init(&made->columns[i], types[i], pool);
    }
    agent_buffer_init(&made->records, pool);
    agent_buffer_init(&made->task_reports, pool);
    agent_buffer_init(&made->literal, pool);
    for (int i = 0; i < batch->items->nelts; i++) {
        const agent_item_t *item = &APR_ARRAY_IDX(batch->items, i,
                                                  agent_item_t);

        if (!item->run->is_dead) {
            add_item(made, batch, item);
        }
    }
    for (int i = 0; i < made->runs->nelts; i++) {
        add_run(made, APR_ARRAY_IDX(made->runs, i, save_run_t *));
    }
    end_params(params, worker_id, made);
}
