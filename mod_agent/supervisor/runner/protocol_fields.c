/* SPDX-License-Identifier: Apache-2.0 */
/* The outer members of lines; see protocol_private.h. */
#include "protocol_private.h"

#include <string.h>

#include "../../core/raw.h"

static const char *const field_names[FIELD_COUNT] = {
    "type",          "run_id",     "epoch",  "event",  "data",
    "checkpoint_id", "path",       "parent", "values", "next",
    "tasks",         "metadata",   "status", "error",  "graphs",
    "runtime",       "slots",      "id",     "bytes",  "op",
    "cursor",        "interrupts", "head",   "ns",     "task"};

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

    while (agent_member_next(&member, &at)) {
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
