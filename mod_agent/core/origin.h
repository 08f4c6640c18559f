/* SPDX-License-Identifier: Apache-2.0 */
/* Origins of web pages (RFC 6454): scheme, host and port, and which ones an
 * administrator allows. */
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
    /* Where none is given the scheme's own; 0: it has none. */
    int port;
} agent_origin_t;

/* Origins that an administrator names together. */
typedef struct agent_origin_pattern_t {
    agent_origin_t origin;
    /* A star alone: everybody; origin is not set. */
    bool is_any;
    /* All hosts below origin.host. */
    bool is_domain;
    bool has_any_port;
} agent_origin_pattern_t;

/*
 * Reads a header `Origin`. False: it is not one origin ("null", several, a
 * path behind it).
 */
bool agent_origin_read(agent_origin_t *out, const char *text);

/* Reads an origin whose port may be a star, and whose host may begin with a
 * star and a dot; or a star alone. False: anything else, or a scheme that pages
 * do not have. */
bool agent_origin_read_pattern(agent_origin_pattern_t *out, const char *text);

/*
 * Whether a header `Origin` fits one of the patterns, an array of
 * agent_origin_pattern_t. "null" fits "*" alone. Linear in the text and in the
 * number of patterns; allocates nothing.
 */
bool agent_origin_is_allowed(const apr_array_header_t *patterns,
                             const char *text);

/* Whether the origin is this one. An IPv6 host may be in brackets or not; port
 * 0: the scheme's own. */
bool agent_origin_is(const agent_origin_t *origin, const char *scheme,
                     const char *host, int port);

#endif
