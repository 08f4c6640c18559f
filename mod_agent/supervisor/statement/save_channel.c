/* SPDX-License-Identifier: Apache-2.0 */
/* A channel of a checkpoint as a row of columns; see save_private.h. */
#include "save_private.h"

#include <string.h>

/* An element whose text is shorter shares its row with others, up to these. */
#define SHORT_BYTES  64
#define ROW_BYTES    2048
#define ROW_ELEMENTS 128

/* The literals of two arrays that are being made: texts, each the content of a
 * row, and how many elements each of them has. */
typedef struct rows_t {
    agent_buffer_t *texts;
    agent_buffer_t *counts;
    /* Of the last text; zero without one. */
    apr_size_t bytes;
    int elements;
} rows_t;

static void begin_rows(rows_t *rows, save_params_t *params)
{
    *rows = (rows_t){&params->literal, &params->counts, 0, 0};
    agent_buffer_clear(rows->texts);
    agent_buffer_clear(rows->counts);
    agent_buffer_append(rows->texts, "{", 1);
    agent_buffer_append(rows->counts, "{", 1);
}

static void end_row(rows_t *rows)
{
    if (rows->elements > 0) {
        agent_buffer_append(rows->texts, "\"", 1);
        agent_buffer_print(rows->counts, "%d", rows->elements);
    }
}

static void end_rows(rows_t *rows)
{
    end_row(rows);
    agent_buffer_append(rows->texts, "}", 1);
    agent_buffer_append(rows->counts, "}", 1);
}

/* Separates the next element from the last one, or begins a row with it. */
static void begin_element(rows_t *rows, apr_size_t length, bool may_share)
{
    if (may_share && rows->elements > 0 && rows->elements < ROW_ELEMENTS
        && rows->bytes + 1 + length <= ROW_BYTES) {
        agent_buffer_append(rows->texts, ",", 1);
        rows->bytes += 1 + length;
        rows->elements++;
        return;
    }
    if (rows->elements > 0) {
        end_row(rows);
        agent_buffer_append(rows->texts, ",", 1);
        agent_buffer_append(rows->counts, ",", 1);
    }
    agent_buffer_append(rows->texts, "\"", 1);
    rows->bytes = length;
    rows->elements = 1;
}

static void add_element(rows_t *rows, const char *text, apr_size_t length,
                        bool may_share)
{
    char *start;
    char *out;

    begin_element(rows, length, may_share);
    start = out = agent_buffer_reserve(rows->texts, 2 * length);
    for (apr_size_t i = 0; i < length; i++) {
        if (text[i] == '"' || text[i] == '\\') {
            *out++ = '\\';
        }
        *out++ = text[i];
    }
    agent_buffer_commit(rows->texts, (apr_size_t)(out - start));
}

static int count_elements(agent_raw_t list)
{
    agent_raw_t element;
    const char *at = list.text;
    int count = 0;

    while (agent_raw_element_next(&element, &at)) {
        count++;
    }
    return count;
}

/*
 * The elements of a list become rows of their own when they average at least
 * 64 bytes, about what a row costs; else rows have several, few enough that a
 * row is cut at little cost. Returns the bytes of the elements, each with one
 * for what separates it from the next.
 */
static apr_int64_t add_elements(rows_t *rows, agent_raw_t list, bool is_short)
{
    agent_raw_t element;
    const char *at = list.text;
    apr_int64_t bytes = 0;

    while (agent_raw_element_next(&element, &at)) {
        add_element(rows, element.text, element.length, is_short);
        bytes += (apr_int64_t)element.length + 1;
    }
    return bytes;
}

static void add_content(save_params_t *params, const agent_channel_t *channel)
{
    bool is_short = false;
    apr_int64_t bytes = 0;
    rows_t rows;

    begin_rows(&rows, params);
    if (channel->kind == AGENT_CHANNEL_ARRAY
        || channel->kind == AGENT_CHANNEL_LIST) {
        int count = count_elements(channel->content);

        is_short = channel->content.length
            < (apr_size_t)SHORT_BYTES * (apr_size_t)count;
        agent_db_column_number(&params->columns[CHANNEL_LENGTH], count);
        bytes = add_elements(&rows, channel->content, is_short);
    }
    else {
        agent_db_column_null(&params->columns[CHANNEL_LENGTH]);
        if (channel->kind == AGENT_CHANNEL_VALUE) {
            add_element(&rows, channel->content.text, channel->content.length,
                        false);
            bytes = (apr_int64_t)channel->content.length + 1;
        }
    }
    end_rows(&rows);
    agent_db_column_number(&params->columns[CHANNEL_BYTES], bytes);
    agent_db_column_text(&params->columns[CHANNEL_CONTENT],
                         agent_buffer_text(rows.texts),
                         agent_buffer_length(rows.texts));
    if (is_short) {
        agent_db_column_text(&params->columns[CHANNEL_ELEMENTS],
                             agent_buffer_text(rows.counts),
                             agent_buffer_length(rows.counts));
    }
    else {
        agent_db_column_null(&params->columns[CHANNEL_ELEMENTS]);
    }
}

void agent_save_add_channel(save_params_t *params,
                            const agent_channel_t *channel)
{
    static const char *const kinds[] = {
        [AGENT_CHANNEL_VALUE] = "value",
        [AGENT_CHANNEL_ARRAY] = "array",
        [AGENT_CHANNEL_LIST] = "list",
        [AGENT_CHANNEL_SAME] = "same",
    };
    const char *name = agent_raw_member_key(&channel->member, params->pool);
    const char *kind = kinds[channel->kind];

    agent_db_column_number(&params->columns[CHANNEL_CHECKPOINT],
                           params->checkpoints);
    agent_db_column_text(&params->columns[CHANNEL_NAME], name, strlen(name));
    if (kind != NULL) {
        agent_db_column_text(&params->columns[CHANNEL_KIND], kind,
                             strlen(kind));
    }
    else {
        /* The database refuses it, and the run ends in error. */
        agent_db_column_null(&params->columns[CHANNEL_KIND]);
    }
    if (channel->kind == AGENT_CHANNEL_LIST) {
        agent_db_column_number(&params->columns[CHANNEL_KEEP], channel->keep);
    }
    else {
        agent_db_column_null(&params->columns[CHANNEL_KEEP]);
    }
    add_content(params, channel);
}
