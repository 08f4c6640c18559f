/* SPDX-License-Identifier: Apache-2.0 */
/* Files that directives name, and the erasure of secrets; see file.h. */
#include "file.h"

#include <string.h>

#include <apr_file_io.h>
#include <apr_strings.h>

char *agent_file_read(const char **problem, cmd_parms *cmd, const char *path,
                      apr_size_t limit)
{
    const char *full = ap_server_root_relative(cmd->temp_pool, path);
    char *text = apr_pcalloc(cmd->pool, limit + 1);
    apr_size_t length = limit;
    apr_file_t *file;
    apr_status_t rv = APR_EBADPATH;

    if (full != NULL) {
        rv = apr_file_open(&file, full, APR_READ, APR_FPROT_OS_DEFAULT,
                           cmd->temp_pool);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_file_read_full(file, text, length, &length);
        apr_file_close(file);
        rv = rv == APR_EOF ? APR_SUCCESS : rv;
    }
    if (rv != APR_SUCCESS || length == limit) {
        *problem = apr_psprintf(
            cmd->pool,
            "%s: expected a readable file of at most %d bytes, "
            "got '%s' (%pm)",
            cmd->cmd->name, (int)limit - 1, path, &rv);
        return NULL;
    }
    return text;
}

typedef struct secret_t {
    void *bytes;
    apr_size_t length;
} secret_t;

static apr_status_t overwrite(void *baton)
{
    const secret_t *secret = baton;

    explicit_bzero(secret->bytes, secret->length);
    return APR_SUCCESS;
}

void agent_file_erase_with_pool(void *bytes, apr_size_t length,
                                apr_pool_t *pool)
{
    secret_t *secret = apr_palloc(pool, sizeof(*secret));

    secret->bytes = bytes;
    secret->length = length;
    apr_pool_cleanup_register(pool, secret, overwrite, apr_pool_cleanup_null);
}
