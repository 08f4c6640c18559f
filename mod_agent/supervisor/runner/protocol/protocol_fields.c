/* SPDX-License-Identifier: Apache-2.0 */
/* The outer members of lines; see protocol_private.h. */
#include "protocol_private.h"

#include <string.h>

#include "../../../core/raw.h"

static const char *const field_names[FIELD_COUNT] = {
    [FIELD_TYPE] = "type",
    [FIELD_RUN_ID] = "run_id",
    [FIELD_EPOCH] = "epoch",
    [FIELD_EVENT] = "event",
    [FIELD_DATA] = "data",
    [FIELD_CHECKPOINT_ID] = "checkpoint_id",
    [FIELD_PATH] = "path",
    [FIELD_PARENT] = "parent",
    [FIELD_VALUES] = "values",
    [FIELD_NEXT] = "next",
    [FIELD_TASKS] = "tasks",
    [FIELD_METADATA] = "metadata",
    [FIELD_FORMAT] = "format",
    [FIELD_STATUS] = "status",
    [FIELD_VALUE] = "value",
    [FIELD_ERROR] = "error",
    [FIELD_GRAPHS] = "graphs",
    [FIELD_RUNTIME] = "runtime",
    [FIELD_FEATURES] = "features",
    [FIELD_SLOTS] = "slots",
    [FIELD_ID] = "id",
    [FIELD_BYTES] = "bytes",
    [FIELD_OP] = "op",
    [FIELD_CURSOR] = "cursor",
    [FIELD_INTERRUPTS] = "interrupts",
    [FIELD_HEAD] = "head",
    [FIELD_BUSY_MS] = "busy_ms",
    [FIELD_SPENT] = "spent",
    [FIELD_TASK] = "task",
    [FIELD_ARGS] = "args",
    [FIELD_ACK] = "ack",
    [FIELD_NS] = "ns",
    [FIELD_CHECKPOINT] = "checkpoint",
    [FIELD_CHANNELS] = "channels",
    [FIELD_TASK_ID] = "task_id",
    [FIELD_TASK_PATH] = "task_path",
    [FIELD_WRITES] = "writes",
    [FIELD_DIGEST] = "digest",
    [FIELD_VALUE_TYPE] = "value_type",
    [FIELD_PART] = "part",
    [FIELD_PARTS] = "parts",
    [FIELD_TEXT] = "text",
    [FIELD_BASE64] = "base64",
    [FIELD_GRAPH_ID] = "graph_id",
};

bool agent_protocol_equals(const agent_protocol_text_t *text, const char *word)
{
    return text->at != NULL && text->length == strlen(word)
        && memcmp(text->at, word, text->length) == 0;
}

char agent_protocol_kind(const agent_protocol_fields_t *fields,
                         agent_protocol_field_t field)
{
    return fields->value[field].at != NULL ? *fields->value[field].at : '\0';
}

bool agent_protocol_is_optional(const agent_protocol_fields_t *fields,
                                agent_protocol_field_t field, char kind)
{
    char given = agent_protocol_kind(fields, field);

    return given == '\0' || given == 'n' || given == kind;
}

static const char *collect_member(agent_protocol_fields_t *fields,
                                  const agent_member_t *member)
{
    const agent_protocol_text_t key = {member->key, member->key_length};

    /* The database unescapes names, so this one could become another member. */
    if (memchr(key.at, '\\', key.length) != NULL) {
        return "has an escaped member name";
    }
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (agent_protocol_equals(&key, field_names[i])) {
            if (fields->value[i].at != NULL) {
                return "has a member twice";
            }
            fields->value[i].at = member->value;
            fields->value[i].length = member->value_length;
        }
    }
    return NULL;
}

const char *agent_protocol_collect(agent_protocol_fields_t *fields,
                                   const char *start)
{
    agent_member_t member;
    const char *at = start;

    while (agent_raw_member_next(&member, &at)) {
        const char *wrong = collect_member(fields, &member);

        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}

bool agent_protocol_word(agent_protocol_text_t *word,
                         const agent_protocol_text_t *value, apr_size_t max)
{
    if (value->at == NULL || *value->at != '"' || value->length < 3
        || value->length - 2 > max) {
        return false;
    }
    word->at = value->at + 1;
    word->length = value->length - 2;
    for (apr_size_t i = 0; i < word->length; i++) {
        if (word->at[i] <= ' ' || word->at[i] > '~' || word->at[i] == '\\') {
            return false;
        }
    }
    return true;
}

/* Whether a character of valid UTF-8 is printable, and not that of an escape. A
 * byte within a character is. */
static bool is_printable(const unsigned char *at)
{
    if (at[0] < 0x80) {
        return at[0] >= ' ' && at[0] != 0x7f && at[0] != '\\';
    }
    if (at[0] == 0xc2) {
        return at[1] >= 0xa0;
    }
    return at[0] != 0xe2 || at[1] != 0x80 || (at[2] != 0xa8 && at[2] != 0xa9);
}

bool agent_protocol_text(agent_protocol_text_t *text,
                         const agent_protocol_text_t *value, apr_size_t max)
{
    if (value->at == NULL || *value->at != '"' || value->length - 2 > max) {
        return false;
    }
    text->at = value->at + 1;
    text->length = value->length - 2;
    for (apr_size_t i = 0; i < text->length; i++) {
        if (!is_printable((const unsigned char *)text->at + i)) {
            return false;
        }
    }
    return true;
}

bool agent_protocol_number(apr_int64_t *number,
                           const agent_protocol_text_t *value, apr_int64_t max)
{
    apr_int64_t result = 0;

    if (value->at == NULL || value->length == 0 || value->length > 18) {
        return false;
    }
    for (apr_size_t i = 0; i < value->length; i++) {
        if (value->at[i] < '0' || value->at[i] > '9') {
            return false;
        }
        result = result * 10 + (value->at[i] - '0');
    }
    *number = result;
    return result <= max;
}

bool agent_protocol_is_uuid(const agent_protocol_text_t *value)
{
    agent_protocol_text_t word;

    if (!agent_protocol_word(&word, value, 36) || word.length != 36) {
        return false;
    }
    for (int i = 0; i < 36; i++) {
        char c = word.at[i];
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? c != '-'
                 : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return true;
}

bool agent_protocol_is_text(const agent_protocol_text_t *value, apr_size_t min,
                            apr_size_t max)
{
    return value->at != NULL && *value->at == '"' && value->length - 2 >= min
        && value->length - 2 <= max;
}

const char *agent_protocol_read_key(agent_line_t *line,
                                    const agent_protocol_fields_t *fields)
{
    apr_int64_t epoch;

    if (!agent_protocol_is_uuid(&fields->value[FIELD_RUN_ID])) {
        return "has no valid run_id";
    }
    if (!agent_protocol_number(&epoch, &fields->value[FIELD_EPOCH],
                               APR_INT32_MAX)) {
        return "has no valid epoch";
    }
    memcpy(line->key.run_id, fields->value[FIELD_RUN_ID].at + 1, 36);
    line->key.epoch = (apr_int32_t)epoch;
    return NULL;
}

const char *agent_protocol_read_acked(agent_line_t *line,
                                      const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *ack = &fields->value[FIELD_ACK];

    if (ack->at != NULL && !agent_protocol_equals(ack, "null")
        && !agent_protocol_number(&line->ack, ack, APR_INT64_MAX)) {
        return "has no valid ack";
    }
    return agent_protocol_read_key(line, fields);
}
