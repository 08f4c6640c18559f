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

/* Whether the quote at `at` belongs to a string that begins after start: an odd
 * number of backslashes precedes it. */
static bool is_escaped(const char *start, const char *at)
{
    const char *first = at;

    while (first > start && first[-1] == '\\') {
        first--;
    }
    return (at - first) % 2 != 0;
}

/* at is the opening quote; returns the byte after the closing one. strchr()
 * compares many bytes at once. */
static const char *skip_string(const char *at)
{
    const char *start = at + 1;
    const char *quote = strchr(start, '"');

    while (quote != NULL && is_escaped(start, quote)) {
        quote = strchr(quote + 1, '"');
    }
    /* Text that has passed the scan has a closing quote. */
    return quote != NULL ? quote + 1 : start + strlen(start);
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

bool agent_raw_member_begin(agent_member_t *member, const char **at)
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
    *at = member->value = skip_space(skip_space(here) + 1);
    return true;
}

bool agent_raw_member_next(agent_member_t *member, const char **at)
{
    if (!agent_raw_member_begin(member, at)) {
        return false;
    }
    *at = skip_value(member->value);
    member->value_length = (apr_size_t)(*at - member->value);
    return true;
}

const char *agent_raw_member_find(const char *object, const char *key)
{
    agent_member_t member;

    if (*object != '{') {
        return "";
    }
    while (agent_raw_member_begin(&member, &object)) {
        if (agent_raw_member_is(&member, key)) {
            return member.value;
        }
        object = skip_value(object);
    }
    return "";
}

const char *agent_raw_element_find(const char *at)
{
    at = skip_space(at);
    if (*at == '[' || *at == ',') {
        at = skip_space(at + 1);
    }
    return *at != ']' ? at : "";
}

bool agent_raw_element_next(agent_raw_t *element, const char **at)
{
    const char *here = agent_raw_element_find(*at);

    if (*here == '\0') {
        return false;
    }
    *at = skip_value(here);
    element->text = here;
    element->length = (apr_size_t)(*at - here);
    return true;
}

const char *agent_raw_end(const char *at)
{
    at = skip_space(at);
    if (*at == '{' || *at == '[') {
        at = skip_space(at + 1);
    }
    return *at != '\0' ? at + 1 : at;
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

/* Whether the content of a string equals text once it is unescaped; at is its
 * first byte, after the quote. */
static bool decodes_to(const char *at, apr_size_t length, const char *text)
{
    agent_unescape_t reader = {.at = at};
    const char *end = at + length;

    while (reader.at < end || reader.left > 0) {
        /* Most bytes do not belong to an escape: no call for them. */
        char byte = reader.left == 0 && *reader.at != '\\'
            ? *reader.at++
            : (char)agent_unescape_next(&reader);

        if (*text == '\0' || byte != *text++) {
            return false;
        }
    }
    return *text == '\0';
}

bool agent_raw_member_is(const agent_member_t *member, const char *name)
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
    while (agent_raw_member_next(&member, &at)) {
        if (agent_raw_member_is(&member, key)) {
            value.text = member.value;
            value.length = member.value_length;
            return value;
        }
    }
    return value;
}

/* The next backslash; end when there is none. */
static const char *find_escape(const char *at, const char *end)
{
    const char *found = memchr(at, '\\', (size_t)(end - at));

    return found != NULL ? found : end;
}

static apr_size_t decoded_length(const char *at, apr_size_t length)
{
    const char *end = at + length;

    while ((at = find_escape(at, end)) < end) {
        agent_unescape_t reader = {.at = at};

        agent_unescape_next(&reader);
        length -= (apr_size_t)(reader.at - at) - 1 - reader.left;
        at = reader.at;
    }
    return length;
}

static const char *decode(const char *at, apr_size_t length, apr_pool_t *pool)
{
    char *text = apr_palloc(pool, decoded_length(at, length) + 1);
    const char *end = at + length;
    char *out = text;

    while (at < end) {
        const char *escape = find_escape(at, end);
        agent_unescape_t reader = {.at = escape};

        memcpy(out, at, (size_t)(escape - at));
        out += escape - at;
        while (escape < end && (reader.at == escape || reader.left > 0)) {
            *out++ = (char)agent_unescape_next(&reader);
        }
        at = reader.at;
    }
    *out = '\0';
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

const char *agent_raw_member_key(const agent_member_t *member, apr_pool_t *pool)
{
    return decode(member->key, member->key_length, pool);
}
