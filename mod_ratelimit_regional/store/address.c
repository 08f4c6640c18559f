/* SPDX-License-Identifier: Apache-2.0 */
/* Parses addresses with apr_uri_parse(). */
#include "address.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>

#define DEFAULT_PORT 6379
#define PORT_MAX     65535
#define DATABASE_MAX 1000000

/* False: text is not a number from min to max. */
static bool read_number(apr_int64_t *value, const char *text, apr_int64_t min,
                        apr_int64_t max)
{
    char *end;

    *value = apr_strtoi64(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && *value >= min
        && *value <= max;
}

static bool read_database(int *database, const char *path)
{
    apr_int64_t value = 0;
    bool is_read = path == NULL || path[0] == '\0' || strcmp(path, "/") == 0
        || read_number(&value, path + 1, 0, DATABASE_MAX);

    *database = (int)value;
    return is_read;
}

/* apr_uri_parse() cuts a port to 16 bits. */
static bool read_port(int *port, const char *text)
{
    apr_int64_t value = DEFAULT_PORT;
    bool is_read = text == NULL || read_number(&value, text, 1, PORT_MAX);

    *port = (int)value;
    return is_read;
}

apr_status_t rlr_address_parse(rlr_address_t *address, const char *text,
                               const char **problem, apr_pool_t *pool)
{
    apr_uri_t uri;
    bool is_read = apr_uri_parse(pool, text, &uri) == APR_SUCCESS;

    if (is_read && uri.scheme != NULL && strcmp(uri.scheme, "rediss") == 0) {
        *problem = apr_psprintf(pool,
                                "expected redis://HOST:PORT/DB, since this "
                                "build has no TLS to the store, got '%s'",
                                text);
        return APR_EINVAL;
    }
    if (!is_read || uri.scheme == NULL || strcmp(uri.scheme, "redis") != 0
        || uri.hostname == NULL || uri.hostname[0] == '\0' || uri.user != NULL
        || uri.query != NULL || uri.fragment != NULL
        || !read_port(&address->port, uri.port_str)
        || !read_database(&address->database, uri.path)) {
        *problem = apr_psprintf(
            pool, "expected redis://HOST:PORT/DB without a password, got '%s'",
            uri.password != NULL ? "redis://...@..." : text);
        return APR_EINVAL;
    }
    address->host = uri.hostname;
    return APR_SUCCESS;
}
