/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of a Redis or Valkey, with rediss for redis where TLS is used:
 *
 *   redis://HOST[:PORT][/DB]                            one server
 *   redis+sentinel://HOST[:PORT][,...]/NAME[/DB]        the primary NAME
 *   redis+cluster://HOST[:PORT][,...]                   some of its nodes
 *
 * No httpd here.
 */
#ifndef RLR_ADDRESS_H
#define RLR_ADDRESS_H

#include <stdbool.h>

#include <apr_errno.h>
#include <apr_pools.h>

#define RLR_ADDRESS_SERVERS_MAX 16
#define RLR_ADDRESS_HOST_MAX    255

typedef enum rlr_address_kind_t {
    RLR_ADDRESS_SERVER,
    RLR_ADDRESS_SENTINEL,
    RLR_ADDRESS_CLUSTER
} rlr_address_kind_t;

typedef struct rlr_server_address_t {
    char host[RLR_ADDRESS_HOST_MAX + 1];
    int port;
} rlr_server_address_t;

typedef struct rlr_address_t {
    rlr_address_kind_t kind;
    bool has_tls;
    const char *text; /* as it was given */
    int count;        /* of the servers named; 0: no address */
    rlr_server_address_t servers[RLR_ADDRESS_SERVERS_MAX];
    const char *primary; /* of Sentinel */
    int database;
} rlr_address_t;

typedef struct rlr_tls_t rlr_tls_t;

/* How a store is reached. */
typedef struct rlr_connection_config_t {
    rlr_address_t address;
    const char *user;     /* or NULL */
    const char *password; /* or NULL */
    rlr_tls_t *tls;       /* where the address has TLS */
} rlr_connection_config_t;

/* Parses the text into *address, in pool. Returns APR_EINVAL with "expected
 * ..., got ..." in *problem. */
apr_status_t rlr_address_parse(rlr_address_t *address, const char *text,
                               const char **problem, apr_pool_t *pool);

/* Parses HOST[:PORT]; false: it is none. port is the default, 0: none. */
bool rlr_address_read_server(rlr_server_address_t *server, const char *text,
                             int port, apr_pool_t *pool);

bool rlr_address_equal(const rlr_server_address_t *a,
                       const rlr_server_address_t *b);

#endif
