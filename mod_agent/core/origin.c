/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Origins of web pages; see origin.h. Only the form in which browsers write
 * origins is accepted, so that another parser cannot read it differently.
 */
#include "origin.h"

#include <string.h>
#include <strings.h>

#include <apr_lib.h>

#define MAX_PORT 65535

/* ---- reading ---- */

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

static int default_port(const char *scheme, size_t length)
{
    if (is_word(scheme, length, "http")) {
        return 80;
    }
    return is_word(scheme, length, "https") ? 443 : 0;
}

/* Whether web pages may have the scheme. Schemes other than http and https
 * belong to apps and browser extensions (tauri://localhost). */
static bool is_page_scheme(const agent_origin_t *origin)
{
    static const char *const others[] = {"file", "ftp", "ws", "wss"};

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        if (is_word(origin->scheme, origin->scheme_length, others[i])) {
            return false;
        }
    }
    return true;
}

/* Returns the text after "scheme://"; NULL without one. */
static const char *read_scheme(agent_origin_t *out, const char *text)
{
    const char *end = text;

    while (apr_isalnum(*end) || (*end != '\0' && strchr("+-.", *end))) {
        end++;
    }
    if (!apr_isalpha(*text) || strncmp(end, "://", 3) != 0) {
        return NULL;
    }
    out->scheme = text;
    out->scheme_length = (size_t)(end - text);
    return end + 3;
}

/* Returns the text after the host; NULL without one. */
static const char *read_host(agent_origin_t *out, const char *text)
{
    const char *end = text;

    if (*text == '[') {
        end += strspn(text + 1, "0123456789abcdefABCDEF:.") + 2;
        if (end - text == 2 || end[-1] != ']') {
            return NULL;
        }
    }
    else {
        while (apr_isalnum(*end) || (*end != '\0' && strchr("-._", *end))) {
            end++;
        }
    }
    out->host = text;
    out->host_length = (size_t)(end - text);
    return end > text ? end : NULL;
}

/* The port and the end of the text; false: something else. */
static bool read_port(agent_origin_t *out, const char *text)
{
    int port = 0;

    if (*text == '\0') {
        out->port = default_port(out->scheme, out->scheme_length);
        return true;
    }
    if (*text != ':') {
        return false;
    }
    for (text++; apr_isdigit(*text) && port <= MAX_PORT; text++) {
        port = port * 10 + (*text - '0');
    }
    out->port = port;
    return *text == '\0' && port > 0 && port <= MAX_PORT;
}

bool agent_origin_read(agent_origin_t *out, const char *text)
{
    const char *rest = read_scheme(out, text);

    rest = rest != NULL ? read_host(out, rest) : NULL;
    return rest != NULL && read_port(out, rest);
}

bool agent_origin_read_pattern(agent_origin_pattern_t *out, const char *text)
{
    const char *rest;

    memset(out, 0, sizeof(*out));
    out->is_any = strcmp(text, "*") == 0;
    if (out->is_any) {
        return true;
    }
    rest = read_scheme(&out->origin, text);
    if (rest == NULL || !is_page_scheme(&out->origin)) {
        return false;
    }
    out->is_domain = strncmp(rest, "*.", 2) == 0;
    rest = read_host(&out->origin, out->is_domain ? rest + 2 : rest);
    if (rest == NULL) {
        return false;
    }
    out->has_any_port = strcmp(rest, ":*") == 0;
    return out->has_any_port || read_port(&out->origin, rest);
}

/* ---- comparing ---- */

static bool is_same(const char *a, size_t a_length, const char *b,
                    size_t b_length)
{
    return a_length == b_length && strncasecmp(a, b, a_length) == 0;
}

/* Whether the host is the domain's, with at least one label before it. */
static bool is_below(const agent_origin_t *origin, const agent_origin_t *domain)
{
    size_t length = domain->host_length;
    const char *end = origin->host + origin->host_length;

    return origin->host_length > length + 1
        && end[-(ptrdiff_t)length - 1] == '.' && origin->host[0] != '.'
        && strncasecmp(end - length, domain->host, length) == 0;
}

static bool matches(const agent_origin_pattern_t *pattern,
                    const agent_origin_t *origin)
{
    const agent_origin_t *wanted = &pattern->origin;

    return is_same(origin->scheme, origin->scheme_length, wanted->scheme,
                   wanted->scheme_length)
        && (pattern->has_any_port || origin->port == wanted->port)
        && (pattern->is_domain ? is_below(origin, wanted)
                               : is_same(origin->host, origin->host_length,
                                         wanted->host, wanted->host_length));
}

bool agent_origin_is_allowed(const apr_array_header_t *patterns,
                             const char *text)
{
    agent_origin_t origin;
    bool is_valid = agent_origin_read(&origin, text);

    for (int i = 0; i < patterns->nelts; i++) {
        const agent_origin_pattern_t *pattern = &APR_ARRAY_IDX(
            patterns, i, agent_origin_pattern_t);

        if (pattern->is_any || (is_valid && matches(pattern, &origin))) {
            return true;
        }
    }
    return false;
}

bool agent_origin_is(const agent_origin_t *origin, const char *scheme,
                     const char *host, int port)
{
    bool has_brackets = *origin->host == '[' && *host != '[';

    return is_word(origin->scheme, origin->scheme_length, scheme)
        && origin->port
        == (port != 0 ? port : default_port(scheme, strlen(scheme)))
        && is_word(origin->host + has_brackets,
                   origin->host_length - 2 * (size_t)has_brackets, host);
}
