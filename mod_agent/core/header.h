/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns that select the request headers which are passed to graphs, and
 * checks of the headers that the configuration adds to webhooks. */
#ifndef AGENT_CORE_HEADER_H
#define AGENT_CORE_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_tables.h>

/* The longest name and value of a header of webhooks, in bytes. */
#define AGENT_HEADER_NAME_MAX  128
#define AGENT_HEADER_VALUE_MAX 4096

/* A pattern of the configuration. */
typedef struct agent_header_pattern_t {
    /* Borrowed from the text that was read. */
    const char *name;
    size_t length;
    /* All names that begin with it. */
    bool is_prefix;
    bool is_excluded;
} agent_header_pattern_t;

/* Parses a name, which may end with `*`, after `!` for one that is excluded.
 * False: anything else, or a name that agent_header_is_selected() never
 * selects. */
bool agent_header_read_pattern(agent_header_pattern_t *out, const char *text);

/*
 * Reads the next pattern of a list, an array of agent_header_pattern_t, into
 * it; text is borrowed. Returns NULL, or in pool what was expected and what was
 * given: no pattern, `none`, too many, or one that has no effect in the list.
 */
const char *agent_header_add_pattern(apr_array_header_t *patterns,
                                     const char *text, apr_pool_t *pool);

/* Whether the pattern `by` excludes every name that the pattern selects. */
bool agent_header_is_hidden(const agent_header_pattern_t *pattern,
                            const agent_header_pattern_t *by);

/* Whether the pattern selects a header that carries credentials. */
bool agent_header_is_credential(const agent_header_pattern_t *pattern);

/*
 * Whether a name, in any case, matches one of the patterns, an array of
 * agent_header_pattern_t, and none that excludes it. Names of credentials match
 * only a pattern without `*`; names that a run or LangGraph gives a meaning in
 * config.configurable are never selected. Allocates nothing.
 */
bool agent_header_is_selected(const apr_array_header_t *patterns,
                              const char *name);

/* Whether a header of that name may be added to webhooks: a delivery does not
 * set it itself, and it does not concern the connection. */
bool agent_header_is_addable(const char *name);

/* Whether text may be the value of a header: one line, without blanks around
 * it. */
bool agent_header_is_value(const char *text);

#endif
