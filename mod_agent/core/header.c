/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns of names of request headers, and headers of webhooks; see header.h.
 * Any client can send any header, so none may become an identifier or the user
 * of a run.
 */
#include "header.h"

#include <string.h>
#include <strings.h>

#include <apr_lib.h>
#include <apr_strings.h>

/* Most patterns of a list: each header of a request is compared with all of
 * them. */
#define PATTERNS_MAX 64
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

/* Returns an error message if the last pattern, or one before it, can never
 * select a header. */
static const char *check_last(const apr_array_header_t *patterns,
                              const char *text, apr_pool_t *pool)
{
    const agent_header_pattern_t *all = (const agent_header_pattern_t *)
                                            patterns->elts;
    const agent_header_pattern_t *last = &all[patterns->nelts - 1];

    if (last == all && last->is_excluded) {
        return apr_psprintf(pool,
                            "expected a name before those that ! leaves out, "
                            "got '%s' first",
                            text);
    }
    /* Bounded: PATTERNS_MAX, and the first message is returned. */
    for (const agent_header_pattern_t *one = all; one < last; one++) {
        const agent_header_pattern_t *lost = last->is_excluded ? one : last;
        const agent_header_pattern_t *by = last->is_excluded ? last : one;

        if (agent_header_is_hidden(lost, by)) {
            return apr_psprintf(pool,
                                "expected names that ! does not leave out "
                                "again, got '%s' beside '!%s'",
                                lost->name, by->name);
        }
    }
    return NULL;
}

const char *agent_header_add_pattern(apr_array_header_t *patterns,
                                     const char *text, apr_pool_t *pool)
{
    agent_header_pattern_t pattern;

    if (patterns->nelts == PATTERNS_MAX || strcasecmp(text, "none") == 0
        || !agent_header_read_pattern(&pattern, text)) {
        return apr_psprintf(pool,
                            "expected None, or at most %d names of headers, "
                            "that may end with * and begin with !, but not "
                            "identifiers of a run, got '%s'",
                            PATTERNS_MAX, text);
    }
    APR_ARRAY_PUSH(patterns, agent_header_pattern_t) = pattern;
    return check_last(patterns, text, pool);
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

bool agent_header_is_addable(const char *name)
{
    static const char *const own[] = {"connection",
                                      "content-encoding",
                                      "content-length",
                                      "content-type",
                                      "expect",
                                      "host",
                                      "keep-alive",
                                      "proxy-connection",
                                      "te",
                                      "trailer",
                                      "transfer-encoding",
                                      "upgrade",
                                      NULL};
    size_t length = strspn(name,
                           "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

    return length > 0 && length <= AGENT_HEADER_NAME_MAX && name[length] == '\0'
        && !is_one_of(name, own) && strncasecmp(name, "webhook-", 8) != 0;
}

bool agent_header_is_value(const char *text)
{
    const char *end = text;

    while (*end != '\0' && !apr_iscntrl(*end)) {
        end++;
    }
    return *end == '\0' && end > text && end - text <= AGENT_HEADER_VALUE_MAX
        && *text != ' ' && end[-1] != ' ';
}
