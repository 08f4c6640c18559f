/* SPDX-License-Identifier: Apache-2.0 */
/* TLS to the store, where hiredis was built with it (RLR_STORE_TLS, set by the
 * Makefile). OpenSSL verifies the server's certificate and name. No httpd
 * here. */
#ifndef RLR_TLS_H
#define RLR_TLS_H

#include <apr_errno.h>
#include <apr_pools.h>

#include "address.h"

struct redisContext; /* of hiredis */

typedef struct rlr_tls_files_t {
    const char *ca;          /* NULL: those of the system */
    const char *certificate; /* of the client, or NULL, with the key */
    const char *key;
    const char *name; /* of the server; NULL: the host of the address */
} rlr_tls_files_t;

/* Reads the files into *tls, in pool. Returns APR_EINVAL with "expected ...,
 * got ..." in *problem, and APR_ENOTIMPL if this build has no TLS. */
apr_status_t rlr_tls_make(rlr_tls_t **tls, const rlr_tls_files_t *files,
                          const char **problem, apr_pool_t *pool);

/* Begins TLS on a connection to the host; verification is part of it. Returns
 * NULL or the error, which is valid as long as the context. */
const char *rlr_tls_start(const rlr_tls_t *tls, struct redisContext *context,
                          const char *host);

#endif
