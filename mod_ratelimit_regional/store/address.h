/* SPDX-License-Identifier: Apache-2.0 */
/* The address of a Redis or Valkey server: redis://HOST[:PORT][/DB]. No httpd
 * here. */
#ifndef RLR_ADDRESS_H
#define RLR_ADDRESS_H

#include <stdbool.h>

#include <apr_errno.h>
#include <apr_pools.h>

typedef struct rlr_address_t {
    const char *host;
    int port;
    int database;
} rlr_address_t;

/* Parses the text into *address, in pool. Returns APR_EINVAL with "expected
 * ..., got ..." in *problem. */
apr_status_t rlr_address_parse(rlr_address_t *address, const char *text,
                               const char **problem, apr_pool_t *pool);

#endif
