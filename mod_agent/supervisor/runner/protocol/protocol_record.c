/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the graph library: blob, put, put_writes; see protocol_private.h.
 * The database reads what the members contain, and whether the values that they
 * name exist.
 */
#include "protocol_private.h"

#include "../../../core/raw.h"

/* Bytes of texts, as they are in the line. */
#define MAX_TASK_PATH  1024
#define MAX_VALUE_TYPE 32
/* A text with escapes must fit into a reply too. */
#define MAX_TEXT (AGENT_PROTOCOL_MAX_LINE - 1024)

static bool is_base64_digit(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')
        || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

/* Base64 of at most a part, with its padding, without line breaks and escapes.
 */
static bool is_base64(const agent_protocol_text_t *value)
{
    apr_size_t padding = 0;
    apr_size_t length;

    if (value->at == NULL || *value->at != '"'
        || (value->length - 2) % 4 != 0) {
        return false;
    }
    length = value->length - 2;
    while (padding < 2 && padding < length
           && value->at[length - padding] == '=') {
        padding++;
    }
    for (apr_size_t i = 1; i <= length - padding; i++) {
        if (!is_base64_digit(value->at[i])) {
            return false;
        }
    }
    return length / 4 * 3 - padding <= AGENT_PROTOCOL_MAX_PART;
}

static bool is_text_part(const agent_protocol_text_t *value)
{
    agent_raw_t text = {value->at, value->length};

    return agent_protocol_is_text(value, 0, MAX_TEXT)
        && agent_raw_string_length(text) <= AGENT_PROTOCOL_MAX_PART;
}

/* Absent, a value is in one part. */
static bool is_part(const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *part = &fields->value[FIELD_PART];
    const agent_protocol_text_t *parts = &fields->value[FIELD_PARTS];
    apr_int64_t number;
    apr_int64_t count;

    if (part->at == NULL && parts->at == NULL) {
        return true;
    }
    return agent_protocol_number(&count, parts, AGENT_PROTOCOL_MAX_PARTS)
        && agent_protocol_number(&number, part, count - 1);
}

const char *agent_protocol_read_blob(agent_line_t *line,
                                     const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *text = &fields->value[FIELD_TEXT];
    const agent_protocol_text_t *base64 = &fields->value[FIELD_BASE64];
    agent_protocol_text_t type;

    line->type = AGENT_LINE_RECORD;
    if (!agent_protocol_is_uuid(&fields->value[FIELD_DIGEST])) {
        return "has no valid digest";
    }
    if (!agent_protocol_word(&type, &fields->value[FIELD_VALUE_TYPE],
                             MAX_VALUE_TYPE)) {
        return "has no valid value_type";
    }
    if (!is_part(fields)) {
        return "has no valid part";
    }
    if ((text->at == NULL) == (base64->at == NULL)) {
        return "has not one of text and base64";
    }
    if (text->at != NULL ? !is_text_part(text) : !is_base64(base64)) {
        return "has no valid text or base64";
    }
    return agent_protocol_read_key(line, fields);
}

/* The members that `put` and `put_writes` share. */
static const char *read_common(agent_line_t *line,
                               const agent_protocol_fields_t *fields)
{
    line->type = AGENT_LINE_RECORD;
    if (!agent_protocol_is_text(&fields->value[FIELD_NS], 0,
                                AGENT_PROTOCOL_MAX_NS)) {
        return "has no valid ns";
    }
    if (!agent_protocol_is_uuid(&fields->value[FIELD_CHECKPOINT_ID])) {
        return "has no valid checkpoint_id";
    }
    return agent_protocol_read_acked(line, fields);
}

const char *agent_protocol_read_put(agent_line_t *line,
                                    const agent_protocol_fields_t *fields)
{
    const agent_protocol_text_t *parent = &fields->value[FIELD_PARENT];

    if (!agent_protocol_equals(parent, "null")
        && !agent_protocol_is_uuid(parent)) {
        return "has no valid parent";
    }
    if (agent_protocol_kind(fields, FIELD_CHECKPOINT) != '{'
        || agent_protocol_kind(fields, FIELD_METADATA) != '{') {
        return "has no checkpoint or no metadata";
    }
    if (agent_protocol_kind(fields, FIELD_CHANNELS) != '{') {
        return "has no channels";
    }
    return read_common(line, fields);
}

const char *agent_protocol_read_writes(agent_line_t *line,
                                       const agent_protocol_fields_t *fields)
{
    if (!agent_protocol_is_text(&fields->value[FIELD_TASK_ID], 1,
                                AGENT_PROTOCOL_MAX_TASK_ID)) {
        return "has no valid task_id";
    }
    if (!agent_protocol_is_text(&fields->value[FIELD_TASK_PATH], 0,
                                MAX_TASK_PATH)) {
        return "has no valid task_path";
    }
    if (agent_protocol_kind(fields, FIELD_WRITES) != '[') {
        return "has no writes";
    }
    return read_common(line, fields);
}
