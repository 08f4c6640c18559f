/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over JSON text that is known to be well-formed: values are skipped, not
 * parsed; see raw.h.
 */
#include "raw.h"

#include <string.h>

#include "unescape.h"

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') {
        at++;
    }
    return at;
}

/* From the opening quote to after the closing one. */
static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++) {
        if (*at == '\\') {
            at++;
        }
    }
    return at + 1;
}

static const char *skip_nested(const char *at)
{
    unsigned depth = 0;

    for (;;) {
        char c = *at;

        if (c == '"') {
            at = skip_string(at);
            continue;
        }
        at++;
        if (c == '{' || c == '[') {
            depth++;
        }
        else if ((c == '}' || c == ']') && --depth == 0) {
            return at;
        }
    }
}

static const char *skip_value(const char *at)
{
    switch (*at) {
    case '"':
        return skip_string(at);
    case '{':
    case '[':
        return skip_nested(at);
    default:
        return at + strcspn(at, ",}] \t\r\n");
    }
}

bool agent_member_next(agent_member_t *member, const char **at)
{
    const char *here = skip_space(*at);

    if (*here == '{' || *here == ',') {
        here = skip_space(here + 1);
    }
    if (*here != '"') {
        return false;
    }
    member->key = here + 1;
    here = skip_string(here);
    member->key_length = (apr_size_t)(here - 1 - member->key);
    /* After the colon, which may have space on both sides. */
    here = skip_space(skip_space(here) + 1);
    member->value = here;
    here = skip_value(here);
    member->value_length = (apr_size_t)(here - member->value);
    *at = here;
    return true;
}

bool agent_element_next(agent_raw_t *element, const char **at)
{
    const char *here = skip_space(*at);

    if (*here == '[' || *here == ',') {
        here = skip_space(here + 1);
    }
    if (*here == ']' || *here == '\0') {
        return false;
    }
    element->text = here;
    here = skip_value(here);
    element->length = (apr_size_t)(here - element->text);
    *at = here;
    return true;
}

agent_raw_t agent_raw_read(const char *text)
{
    const char *start = skip_space(text);
    agent_raw_t value = {start, (apr_size_t)(skip_value(start) - start)};

    return value;
}

agent_raw_kind_t agent_raw_kind(agent_raw_t value)
{
    switch (value.length > 0 ? *value.text : '\0') {
    case '\0':
        return AGENT_RAW_NONE;
    case 'n':
        return AGENT_RAW_NULL;
    case 't':
    case 'f':
        return AGENT_RAW_BOOLEAN;
    case '"':
        return AGENT_RAW_STRING;
    case '[':
        return AGENT_RAW_ARRAY;
    case '{':
        return AGENT_RAW_OBJECT;
    default:
        return AGENT_RAW_NUMBER;
    }
}

/* Whether the string decodes to text; `at` is its first byte after the
 * quote. */
static bool decodes_to(const char *at, apr_size_t length, const char *text)
{
    agent_unescape_t reader = {.at = at};
    const char *end = at + length;

    while (reader.at < end || reader.left > 0) {
        if (*text == '\0'
            || agent_unescape_next(&reader) != (unsigned char)*text++) {
            return false;
        }
    }
    return *text == '\0';
}

bool agent_member_is(const agent_member_t *member, const char *name)
{
    return decodes_to(member->key, member->key_length, name);
}

bool agent_raw_equals(agent_raw_t value, const char *text)
{
    return agent_raw_kind(value) == AGENT_RAW_STRING
        && decodes_to(value.text + 1, value.length - 2, text);
}

agent_raw_t agent_raw_get(agent_raw_t object, const char *key)
{
    agent_raw_t value = {NULL, 0};
    const char *at = object.text;
    agent_member_t member;

    if (agent_raw_kind(object) != AGENT_RAW_OBJECT) {
        return value;
    }
    while (agent_member_next(&member, &at)) {
        if (agent_member_is(&member, key)) {
            value.text = member.value;
            value.length = member.value_length;
            return value;
        }
    }
    return value;
}

static apr_size_t decoded_length(const char *at, apr_size_t length)
{
    agent_unescape_t reader = {.at = at};
    const char *end = at + length;
    apr_size_t count = 0;

    if (memchr(at, '\\', length) == NULL) {
        return length;
    }
    for (; reader.at < end || reader.left > 0; count++) {
        agent_unescape_next(&reader);
    }
    return count;
}

static const char *decode(const char *at, apr_size_t length, apr_pool_t *pool)
{
    apr_size_t size = decoded_length(at, length);
    agent_unescape_t reader = {.at = at};
    char *text = apr_palloc(pool, size + 1);

    for (apr_size_t i = 0; i < size; i++) {
        text[i] = (char)agent_unescape_next(&reader);
    }
    text[size] = '\0';
    return text;
}

apr_size_t agent_raw_string_length(agent_raw_t value)
{
    return agent_raw_kind(value) == AGENT_RAW_STRING
        ? decoded_length(value.text + 1, value.length - 2)
        : 0;
}

const char *agent_raw_string(agent_raw_t value, apr_pool_t *pool)
{
    return agent_raw_kind(value) == AGENT_RAW_STRING
        ? decode(value.text + 1, value.length - 2, pool)
        : NULL;
}

const char *agent_member_key(const agent_member_t *member, apr_pool_t *pool)
{
    return decode(member->key, member->key_length, pool);
}
