/* SPDX-License-Identifier: Apache-2.0 */
/* A channel of a checkpoint as a row of columns; see save_private.h. */
#include "save_private.h"

#include <string.h>

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

        agent_db_column_number(&params->columns[CHANNEL_LENGTH], count);
        bytes = add_elements(&params->literal, channel->content, count);
    }
    else {
        agent_db_column_null(&params->columns[CHANNEL_LENGTH]);
        if (channel->kind == AGENT_CHANNEL_VALUE) {
            add_element(&params->literal, channel->content.text,
                        channel->content.length);
            bytes = (apr_int64_t)channel->content.length + 1;
        }
    }
    agent_buffer_append(&params->literal, "}", 1);
    agent_db_column_number(&params->columns[CHANNEL_BYTES], bytes);
    agent_db_column_text(&params->columns[CHANNEL_CONTENT],
                         agent_buffer_text(&params->literal),
                         agent_buffer_length(&params->literal));
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
    const char *name = agent_member_key(&channel->member, params->pool);
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
