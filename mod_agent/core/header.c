/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of names of request headers; see header.h. A header comes from
 * anybody: it must never become an identifier or a user of a run.
 */
#include "header.h"

#include <string.h>
#include <strings.h>

/* The longest name of a pattern, in bytes. */
#define NAME_MAX_BYTES 128

static bool is_one_of(const char *name, const char *const *words)
{
    while (*words != NULL && strcasecmp(name, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

static bool is_credential(const char *name)
{
    static const char *const names[] = {"authorization", "proxy-authorization",
                                        "cookie", "x-api-key", NULL};

    return is_one_of(name, names);
}

static bool is_reserved(const char *name)
{
    static const char *const names[] = {
        "user_id",       "thread_id",      "run_id",
        "assistant_id",  "graph_id",       "checkpoint_id",
        "checkpoint_ns", "checkpoint_map", NULL};

    return is_one_of(name, names) || strncasecmp(name, "langgraph_", 10) == 0
        || strncmp(name, "__", 2) == 0;
}

bool agent_header_read_pattern(agent_header_pattern_t *out, const char *text)
{
    out->is_excluded = *text == '!';
    out->name = out->is_excluded ? text + 1 : text;
    out->length = strspn(out->name,
                         "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    out->is_prefix = out->name[out->length] == '*';
    return out->name[out->length + (out->is_prefix ? 1 : 0)] == '\0'
        && out->length <= NAME_MAX_BYTES && (out->is_prefix || out->length > 0)
        && (out->is_excluded || !is_reserved(out->name));
}

bool agent_header_is_credential(const agent_header_pattern_t *pattern)
{
    return !pattern->is_excluded && !pattern->is_prefix
        && is_credential(pattern->name);
}

bool agent_header_is_hidden(const agent_header_pattern_t *pattern,
                            const agent_header_pattern_t *by)
{
    return by->is_excluded && !pattern->is_excluded
        && strncasecmp(pattern->name, by->name, by->length) == 0
        && (by->is_prefix
                ? pattern->length >= by->length
                : !pattern->is_prefix && pattern->length == by->length);
}

static bool matches(const agent_header_pattern_t *pattern, const char *name)
{
    return strncasecmp(name, pattern->name, pattern->length) == 0
        && (pattern->is_prefix || name[pattern->length] == '\0');
}

bool agent_header_is_selected(const apr_array_header_t *patterns,
                              const char *name)
{
    bool is_selected = false;

    for (int i = 0; i < patterns->nelts; i++) {
        const agent_header_pattern_t *pattern = &APR_ARRAY_IDX(
            patterns, i, const agent_header_pattern_t);

        if (matches(pattern, name)) {
            if (pattern->is_excluded) {
                return false;
            }
            is_selected = is_selected || !pattern->is_prefix
                || !is_credential(name);
        }
    }
    return is_selected && !is_reserved(name);
}
