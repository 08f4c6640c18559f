/* SPDX-License-Identifier: Apache-2.0 */
/* Parses addresses: apr_uri_parse() takes one host only. */
#include "address.h"

#include <string.h>
#include <strings.h>

#include <apr_network_io.h>
#include <apr_strings.h>

#define SERVER_PORT   6379
#define SENTINEL_PORT 26379
#define DATABASE_MAX  1000000

typedef struct scheme_t {
    const char *prefix;
    rlr_address_kind_t kind;
    bool has_tls;
} scheme_t;

static const scheme_t schemes[] = {
    {"redis://", RLR_ADDRESS_SERVER, false},
    {"rediss://", RLR_ADDRESS_SERVER, true},
    {"redis+sentinel://", RLR_ADDRESS_SENTINEL, false},
    {"rediss+sentinel://", RLR_ADDRESS_SENTINEL, true},
    {"redis+cluster://", RLR_ADDRESS_CLUSTER, false},
    {"rediss+cluster://", RLR_ADDRESS_CLUSTER, true},
};

static const char *const forms[] = {
    "redis://HOST:PORT/DB",
    "redis+sentinel://HOST:PORT,.../NAME/DB",
    "redis+cluster://HOST:PORT,...",
};

/* With an unknown scheme. */
static const char any_form[] = "redis://, redis+sentinel:// or "
                               "redis+cluster://, or rediss... with TLS";

/* Takes the scheme off *text; NULL: it is none of them. */
static const scheme_t *read_scheme(const char **text)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t length = strlen(schemes[i].prefix);

        if (strncasecmp(*text, schemes[i].prefix, length) == 0) {
            *text += length;
            return &schemes[i];
        }
    }
    return NULL;
}

bool rlr_address_read_server(rlr_server_address_t *server, const char *text,
                             int port, apr_pool_t *pool)
{
    char *host;
    char *scope;
    apr_port_t named;

    if (apr_parse_addr_port(&host, &scope, &named, text, pool) != APR_SUCCESS
        || host == NULL || host[0] == '\0' || scope != NULL
        || strlen(host) > RLR_ADDRESS_HOST_MAX || (named == 0 && port == 0)) {
        return false;
    }
    apr_cpystrn(server->host, host, sizeof(server->host));
    server->port = named != 0 ? named : port;
    return true;
}

bool rlr_address_equal(const rlr_server_address_t *a,
                       const rlr_server_address_t *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* Without brackets apr_parse_addr_port() takes the end of an IPv6 address for
 * a port. */
static bool has_brackets_if_needed(const char *server)
{
    const char *colon = strchr(server, ':');

    return server[0] == '[' || colon == NULL || strchr(colon + 1, ':') == NULL;
}

static bool read_servers(rlr_address_t *address, char *list, apr_pool_t *pool)
{
    int port = address->kind == RLR_ADDRESS_SENTINEL ? SENTINEL_PORT
                                                     : SERVER_PORT;
    char *next = list;

    while (next != NULL) {
        char *comma = strchr(next, ',');

        if (comma != NULL) {
            *comma = '\0';
        }
        if (address->count == RLR_ADDRESS_SERVERS_MAX
            || !has_brackets_if_needed(next)
            || !rlr_address_read_server(&address->servers[address->count], next,
                                        port, pool)) {
            return false;
        }
        address->count++;
        next = comma != NULL ? comma + 1 : NULL;
    }
    return address->kind != RLR_ADDRESS_SERVER || address->count == 1;
}

static bool read_database(int *database, const char *text)
{
    char *end;
    apr_int64_t value = apr_strtoi64(text, &end, 10);

    *database = (int)value;
    return text[0] == '\0'
        || (text[0] >= '0' && text[0] <= '9' && *end == '\0'
            && value <= DATABASE_MAX);
}

/* The text after the servers, without its first slash. */
static bool read_path(rlr_address_t *address, char *path)
{
    char *slash;

    if (address->kind == RLR_ADDRESS_CLUSTER) {
        return path[0] == '\0';
    }
    if (address->kind == RLR_ADDRESS_SERVER) {
        return read_database(&address->database, path);
    }
    slash = strchr(path, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    address->primary = path;
    return path[0] != '\0'
        && read_database(&address->database, slash != NULL ? slash + 1 : "");
}

apr_status_t rlr_address_parse(rlr_address_t *address, const char *text,
                               const char **problem, apr_pool_t *pool)
{
    const char *rest = text;
    const scheme_t *scheme = read_scheme(&rest);
    char *servers = apr_pstrdup(pool, rest);
    char *path = strchr(servers, '/');
    bool has_password = strchr(text, '@') != NULL;

    memset(address, 0, sizeof(*address));
    address->text = apr_pstrdup(pool, text);
    if (path != NULL) {
        *path++ = '\0';
    }
    if (scheme != NULL) {
        address->kind = scheme->kind;
        address->has_tls = scheme->has_tls;
    }
    if (scheme == NULL || has_password || strpbrk(rest, "?#") != NULL
        || !read_servers(address, servers, pool)
        || !read_path(address,
                      path != NULL ? path : servers + strlen(servers))) {
        address->count = 0;
        *problem = apr_psprintf(
            pool, "expected %s%s, got '%s'",
            scheme == NULL ? any_form : forms[address->kind],
            has_password
                ? " without a password (RateLimitStorePasswordFile has it)"
                : "",
            has_password ? "redis://...@..." : text);
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}
