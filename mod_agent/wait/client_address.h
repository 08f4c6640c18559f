/* SPDX-License-Identifier: Apache-2.0 */
/* Client addresses, and how many waiters or slots each of them has. Nothing
 * here locks: the caller has a lock for what it counts. */
#ifndef AGENT_WAIT_CLIENT_ADDRESS_H
#define AGENT_WAIT_CLIENT_ADDRESS_H

#include <apr_hash.h>
#include <apr_network_io.h>

typedef struct agent_address_t {
    apr_uint64_t number;
    int count;
    /* Next in the free list. */
    struct agent_address_t *next;
} agent_address_t;

typedef struct agent_addresses_t {
    apr_hash_t *by_number;
    agent_address_t *free;
} agent_addresses_t;

/* An IPv4 address, or the network of an IPv6 address: one client has as many
 * addresses of its /64 as it likes. */
apr_uint64_t agent_address_number(const apr_sockaddr_t *client);

/* "192.0.2.1" or "2001:db8:0:1::/64", for the log; in pool. */
const char *agent_address_print(apr_uint64_t number, apr_pool_t *pool);

void agent_addresses_make(agent_addresses_t *addresses, apr_pool_t *pool);

int agent_addresses_count(const agent_addresses_t *addresses,
                          apr_uint64_t number);

/* One more; the address stays the same until its last one has left. */
agent_address_t *agent_addresses_enter(agent_addresses_t *addresses,
                                       apr_uint64_t number);
void agent_addresses_leave(agent_addresses_t *addresses, apr_uint64_t number);

#endif
