/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of waiters or slots per client address. The caller locks. */
#ifndef AGENT_WAIT_CLIENT_ADDRESS_H
#define AGENT_WAIT_CLIENT_ADDRESS_H

#include <apr_hash.h>
#include <apr_network_io.h>

typedef struct agent_client_address_t {
    /* agent_client_address_number() */
    apr_uint64_t number;
    int count;
    /* Next in the free list. */
    struct agent_client_address_t *next;
} agent_client_address_t;

typedef struct agent_client_addresses_t {
    apr_hash_t *by_number;
    agent_client_address_t *free;
} agent_client_addresses_t;

/* Returns the number of a client's address: the IPv4 address, or the /64
 * network of an IPv6 address, since a client may use all addresses of its
 * network. */
apr_uint64_t agent_client_address_number(const apr_sockaddr_t *client);

/* Returns "192.0.2.1" or "2001:db8:0:1::/64", for the log; in pool. */
const char *agent_client_address_print(apr_uint64_t number, apr_pool_t *pool);

/* Initializes the counts. pool: for the hash and its entries. */
void agent_client_addresses_init(agent_client_addresses_t *addresses,
                                 apr_pool_t *pool);

/* Returns the count of an address; 0 for one without an entry. */
int agent_client_addresses_count(const agent_client_addresses_t *addresses,
                                 apr_uint64_t number);

/* Counts one more. The returned address is valid until its count is 0. */
agent_client_address_t *agent_client_addresses_add(
    agent_client_addresses_t *addresses, apr_uint64_t number);

/* Counts one less; required for each agent_client_addresses_add(). */
void agent_client_addresses_remove(agent_client_addresses_t *addresses,
                                   apr_uint64_t number);

#endif
