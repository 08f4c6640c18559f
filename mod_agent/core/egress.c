/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for URLs of clients; see egress.h. URLs are parsed by libcurl, which
 * also makes the requests, because two parsers may differ.
 */
#include "egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <apr_lib.h>
#include <apr_strings.h>
#include <curl/curl.h>

#include "address.h"
#include "origin.h"

#define HOST_BYTES 253

/* An IP address as the host of a URL. */
typedef union literal_t {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} literal_t;

agent_egress_t *agent_egress_make(apr_pool_t *pool)
{
    agent_egress_t *rule = apr_pcalloc(pool, sizeof(*rule));

    rule->blocks = apr_array_make(pool, 2, sizeof(agent_address_block_t));
    rule->hosts = apr_array_make(pool, 2, sizeof(const char *));
    rule->ports = apr_array_make(pool, 2, sizeof(agent_egress_ports_t));
    rule->denied = apr_array_make(pool, 2, sizeof(agent_address_block_t));
    rule->origins = apr_array_make(pool, 2, sizeof(agent_origin_pattern_t));
    return rule;
}

/* ---- rules ---- */

/* A host name normalized for comparison: lower case, no trailing dot. */
static const char *fold_host(const char *host, apr_pool_t *pool)
{
    char *folded = apr_pstrdup(pool, host);
    size_t length = strlen(folded);

    for (char *c = folded; *c != '\0'; c++) {
        *c = (char)apr_tolower(*c);
    }
    if (length > 1 && folded[length - 1] == '.') {
        folded[length - 1] = '\0';
    }
    return folded;
}

/* The last label must have a letter, which excludes mistyped addresses. */
static bool is_host_name(const char *text)
{
    bool has_letter = false;

    if (*text == '\0' || *text == '.' || strlen(text) > HOST_BYTES) {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text == '.' && text[1] != '\0') {
            has_letter = false;
        }
        else if (apr_isalpha(*text)) {
            has_letter = true;
        }
        else if (!apr_isdigit(*text) && strchr("-_.", *text) == NULL) {
            return false;
        }
    }
    return has_letter;
}

/* Blocks of ::ffff:0:0/96 become IPv4 blocks, the form for comparison. */
static bool read_block(agent_address_block_t *out, const char *text)
{
    return agent_address_read_block(out, text)
        && agent_address_unmap_block(out);
}

bool agent_egress_allow(agent_egress_t *rule, const char *text)
{
    agent_address_block_t block;

    if (read_block(&block, text)) {
        APR_ARRAY_PUSH(rule->blocks, agent_address_block_t) = block;
        return true;
    }
    if (is_host_name(text)) {
        APR_ARRAY_PUSH(rule->hosts,
                       const char *) = fold_host(text, rule->hosts->pool);
        return true;
    }
    return false;
}

bool agent_egress_deny(agent_egress_t *rule, const char *text)
{
    agent_address_block_t block;

    if (!read_block(&block, text)) {
        return false;
    }
    APR_ARRAY_PUSH(rule->denied, agent_address_block_t) = block;
    return true;
}

const char *agent_egress_expected(const char *text, bool may_be_host)
{
    agent_address_block_t block;

    if (agent_address_read_block(&block, text)) {
        return "an IPv4 block, or at least 96 bits of ::ffff:0:0/96";
    }
    if (!may_be_host && is_host_name(text)) {
        return "addresses, no names: a host may have other names";
    }
    return agent_address_expected(text);
}

/* Parses a port from 1 to 65535, and sets the text after it; 0: invalid. */
static int read_port(const char *text, const char **rest)
{
    char *end;
    long port = apr_isdigit(*text) ? strtol(text, &end, 10) : 0;

    if (port < 1 || port > 65535) {
        return 0;
    }
    *rest = end;
    return (int)port;
}

bool agent_egress_allow_ports(agent_egress_t *rule, const char *text)
{
    agent_egress_ports_t ports;

    ports.first = read_port(text, &text);
    ports.last = ports.first;
    if (ports.first != 0 && *text == '-') {
        ports.last = read_port(text + 1, &text);
    }
    if (ports.first == 0 || ports.last < ports.first || *text != '\0') {
        return false;
    }
    APR_ARRAY_PUSH(rule->ports, agent_egress_ports_t) = ports;
    return true;
}

bool agent_egress_allow_origin(agent_egress_t *rule, const char *text)
{
    agent_origin_pattern_t pattern;

    if (strcmp(text, "https") == 0) {
        rule->has_https = true;
        return true;
    }
    if (!agent_origin_read_pattern(&pattern, text) || pattern.is_any
        || strncasecmp(text, "http", 4) != 0) {
        return false;
    }
    APR_ARRAY_PUSH(rule->origins, agent_origin_pattern_t) = pattern;
    return true;
}

/* ---- URLs ---- */

static const char *get_part(CURLU *url, CURLUPart part, apr_pool_t *pool)
{
    char *text = NULL;
    const char *copy = NULL;

    if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK) {
        copy = apr_pstrdup(pool, text);
    }
    curl_free(text);
    return copy;
}

static const char *strip_brackets(const char *host, apr_pool_t *pool)
{
    size_t length = strlen(host);

    return host[0] == '[' && length > 2
        ? apr_pstrmemdup(pool, host + 1, length - 2)
        : host;
}

/* Checks the parts that libcurl has parsed; NULL if they are valid. */
static const char *read_parts(agent_egress_target_t *out, CURLU *url,
                              apr_pool_t *pool)
{
    const char *scheme = get_part(url, CURLUPART_SCHEME, pool);
    const char *host = get_part(url, CURLUPART_HOST, pool);
    const char *port = get_part(url, CURLUPART_PORT, pool);

    if (scheme == NULL
        || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)) {
        return "a URL with http:// or https://";
    }
    if (get_part(url, CURLUPART_USER, pool) != NULL
        || get_part(url, CURLUPART_PASSWORD, pool) != NULL) {
        return "a URL without user and password";
    }
    if (get_part(url, CURLUPART_ZONEID, pool) != NULL) {
        return "a URL without a zone";
    }
    if (host == NULL || *host == '\0' || port == NULL) {
        return "a URL with a host";
    }
    out->scheme = scheme;
    out->host = fold_host(strip_brackets(host, pool), pool);
    out->port = (int)strtol(port, NULL, 10);
    return NULL;
}

/* Checks that libcurl does not make. */
static const char *check_form(const char *text)
{
    const char *slashes = strstr(text, "://");

    if (strlen(text) > AGENT_EGRESS_URL_BYTES) {
        return "a URL of at most " APR_STRINGIFY(
            AGENT_EGRESS_URL_BYTES) " bytes";
    }
    for (const char *c = text; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~') {
            return "a URL of printable ASCII characters, others "
                   "percent-encoded";
        }
    }
    if (slashes == NULL) {
        return "an absolute URL with http:// or https://; a relative one "
               "would call this server itself";
    }
    return slashes[3] == '/' ? "a URL with a host" : NULL;
}

const char *agent_egress_read_url(agent_egress_target_t *out, const char *url,
                                  apr_pool_t *pool)
{
    const char *expected = check_form(url);
    CURLU *parsed;
    CURLUcode code;

    if (expected != NULL) {
        return expected;
    }
    parsed = curl_url();
    code = curl_url_set(parsed, CURLUPART_URL, url, 0);
    expected = code == CURLUE_OK
        ? read_parts(out, parsed, pool)
        : apr_psprintf(pool, "a URL with http:// or https:// (%s)",
                       curl_url_strerror(code));
    curl_url_cleanup(parsed);
    return expected;
}

/* ---- allowed targets ---- */

static bool is_port_allowed(const agent_egress_t *rule, int port)
{
    for (int i = 0; i < rule->ports->nelts; i++) {
        const agent_egress_ports_t *ports = &APR_ARRAY_IDX(
            rule->ports, i, agent_egress_ports_t);

        if (port >= ports->first && port <= ports->last) {
            return true;
        }
    }
    return rule->ports->nelts == 0 && (port == 80 || port == 443);
}

static const char *print_ports(const agent_egress_t *rule, apr_pool_t *pool)
{
    const char *text = "";

    /* Bounded: the ports of the configuration. */
    for (int i = 0; i < rule->ports->nelts; i++) {
        const agent_egress_ports_t *ports = &APR_ARRAY_IDX(
            rule->ports, i, agent_egress_ports_t);

        text = apr_psprintf(pool, "%s%s%d", text, i > 0 ? ", " : "",
                            ports->first);
        if (ports->last > ports->first) {
            text = apr_psprintf(pool, "%s-%d", text, ports->last);
        }
    }
    return rule->ports->nelts > 0 ? text : "80, 443";
}

static bool is_origin_allowed(const agent_egress_t *rule,
                              const agent_egress_target_t *target,
                              apr_pool_t *pool)
{
    bool is_ipv6 = strchr(target->host, ':') != NULL;

    if (rule->has_https && strcmp(target->scheme, "https") == 0) {
        return true;
    }
    if (rule->origins->nelts == 0) {
        return !rule->has_https;
    }
    return agent_origin_is_allowed(
        rule->origins,
        apr_psprintf(pool, "%s://%s%s%s:%d", target->scheme, is_ipv6 ? "[" : "",
                     target->host, is_ipv6 ? "]" : "", target->port));
}

static bool is_host_allowed(const agent_egress_t *rule, const char *host)
{
    for (int i = 0; i < rule->hosts->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(rule->hosts, i, const char *), host) == 0) {
            return true;
        }
    }
    return false;
}

/* localhost and its subdomains are this host by definition (RFC 6761, 6.3). */
static const char *address_of_localhost(const char *host)
{
    const char *last = strrchr(host, '.');

    return strcmp(last != NULL ? last + 1 : host, "localhost") == 0
        ? "127.0.0.1"
        : host;
}

/* False: the host is a name. */
static bool read_literal(literal_t *out, const char *host)
{
    host = address_of_localhost(host);
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, host, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        return true;
    }
    if (inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        return true;
    }
    return false;
}

/* A mapped IPv4 address is compared in both forms. */
static bool is_denied(const agent_egress_t *rule,
                      const struct sockaddr *address)
{
    literal_t v4;

    return agent_address_is_in_any(rule->denied, address)
        || (agent_address_unmap(&v4.v4, address)
            && agent_address_is_in_any(rule->denied, &v4.any));
}

const char *agent_egress_directive(const agent_egress_t *rule,
                                   const agent_egress_target_t *target,
                                   apr_pool_t *pool)
{
    literal_t literal;

    if (!is_port_allowed(rule, target->port)) {
        return "AgentWebhookPorts";
    }
    if (!is_origin_allowed(rule, target, pool)) {
        return "AgentWebhookOrigin";
    }
    return read_literal(&literal, target->host) && is_denied(rule, &literal.any)
        ? "AgentWebhookDeny"
        : "AgentWebhookAllow";
}

bool agent_egress_permits(const agent_egress_t *rule,
                          const apr_array_header_t *own,
                          const agent_egress_target_t *target,
                          const struct sockaddr *address)
{
    if (is_denied(rule, address)) {
        return false;
    }
    if (is_host_allowed(rule, target->host)
        || agent_address_is_in_any(rule->blocks, address)) {
        return true;
    }
    return agent_address_is_public(address)
        && (own == NULL || !agent_address_is_in_any(own, address));
}

const char *agent_egress_check(const agent_egress_t *rule,
                               const apr_array_header_t *own,
                               const agent_egress_target_t *target,
                               apr_pool_t *pool)
{
    literal_t literal;

    if (!is_port_allowed(rule, target->port)) {
        return apr_psprintf(pool, "a URL with one of the ports %s",
                            print_ports(rule, pool));
    }
    if (!is_origin_allowed(rule, target, pool)) {
        return "a URL whose scheme and host this server may call";
    }
    if (read_literal(&literal, target->host)
        && !agent_egress_permits(rule, own, target, &literal.any)) {
        return "a URL whose host this server may call";
    }
    return NULL;
}
