/* SPDX-License-Identifier: Apache-2.0 */
/* Origins of web pages (RFC 6454): scheme, host and port, and patterns that
 * allow them. */
#ifndef AGENT_CORE_ORIGIN_H
#define AGENT_CORE_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_tables.h>

/* Borrowed from the text that was read. */
typedef struct agent_origin_t {
    const char *scheme;
    size_t scheme_length;
    /* An IPv6 address in its brackets. */
    const char *host;
    size_t host_length;
    /* The scheme's default if none is given; 0: the scheme has no default. */
    int port;
} agent_origin_t;

/* A pattern of the configuration. */
typedef struct agent_origin_pattern_t {
    agent_origin_t origin;
    /* `*`: any origin; the member origin is not set. */
    bool is_any;
    /* All hosts below origin.host. */
    bool is_domain;
    bool has_any_port;
} agent_origin_pattern_t;

/*
 * Parses the value of a header Origin. False: it is not a single origin
 * ("null", a list, an origin with a path).
 */
bool agent_origin_read(agent_origin_t *out, const char *text);

/* Parses `*`, or an origin whose port may be `*` and whose host may begin with
 * `*.`. False: anything else, or a scheme that web pages do not have. */
bool agent_origin_read_pattern(agent_origin_pattern_t *out, const char *text);

/*
 * Whether the value of a header Origin matches one of the patterns, an array of
 * agent_origin_pattern_t. "null" matches only "*". Linear in the text and in
 * the number of patterns; allocates nothing.
 */
bool agent_origin_is_allowed(const apr_array_header_t *patterns,
                             const char *text);

/* Whether two origins are equal. An IPv6 host may have brackets; port 0 means
 * the default of the scheme. */
bool agent_origin_is(const agent_origin_t *origin, const char *scheme,
                     const char *host, int port);

#endif
