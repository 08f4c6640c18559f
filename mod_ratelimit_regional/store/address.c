/* SPDX-License-Identifier: Apache-2.0 */
/* Parses addresses with apr_uri_parse(). */
#include "address.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>

#define DEFAULT_PORT 6379
#define DATABASE_MAX 1000000

static bool read_database(int *database, const char *path)
{
    char *end;
    apr_int64_t value;

    *database = 0;
    if (path == NULL || path[0] == '\0' || strcmp(path, "/") == 0) {
        return true;
    }
    value = apr_strtoi64(path + 1, &end, 10);
    *database = (int)value;
    return path[1] >= '0' && path[1] <= '9' && *end == '\0' && value >= 0
        && value <= DATABASE_MAX;
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
        || !read_database(&address->database, uri.path)) {
        *problem = apr_psprintf(
            pool, "expected redis://HOST:PORT/DB without a password, got '%s'",
            uri.password != NULL ? "redis://...@..." : text);
        return APR_EINVAL;
    }
    address->host = uri.hostname;
    address->port = uri.port_str != NULL ? uri.port : DEFAULT_PORT;
    return APR_SUCCESS;
}
