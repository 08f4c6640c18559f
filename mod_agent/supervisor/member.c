/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks over the outer members of a JSON object that is known to be
 * well-formed: values are skipped, not parsed; see protocol.h.
 */
#include "protocol.h"

#include <string.h>

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') {
        at++;
    }
    return at;
}

/* From the opening quote to behind the closing one. */
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
    /* Behind the colon, which may have space on both sides. */
    here = skip_space(skip_space(here) + 1);
    member->value = here;
    here = skip_value(here);
    member->value_length = (apr_size_t)(here - member->value);
    *at = here;
    return true;
}
