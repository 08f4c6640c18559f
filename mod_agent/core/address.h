/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses: address blocks, and which addresses are public. */
#ifndef AGENT_CORE_ADDRESS_H
#define AGENT_CORE_ADDRESS_H

#include <stdbool.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <apr_tables.h>

/* An address block (CIDR). */
typedef struct agent_address_block_t {
    /* AF_INET or AF_INET6. */
    int family;
    int bits;
    /* In network order; AF_INET uses 4. */
    unsigned char bytes[16];
} agent_address_block_t;

/*
 * Parses "10.0.0.0/8", "fd00::/8" or a single address. Addresses must be in
 * standard notation (four decimal numbers; RFC 4291), and host bits must be
 * zero. False for anything else.
 */
bool agent_address_read_block(agent_address_block_t *out, const char *text);

/* Describes the expected text after agent_address_read_block() has failed, to
 * follow the word "expected"; constant. */
const char *agent_address_expected(const char *text);

/*
 * Converts a block of ::ffff:0:0/96 to its IPv4 block; others are unchanged.
 * False: the block contains ::ffff:0:0/96 and further addresses, so that it has
 * no IPv4 equivalent.
 */
bool agent_address_unmap_block(agent_address_block_t *block);

/* Whether the block contains the address. An IPv4 block contains no IPv6
 * address, not even a mapped one. */
bool agent_address_is_in(const agent_address_block_t *block,
                         const struct sockaddr *address);

/* Whether one of an array of agent_address_block_t contains the address. */
bool agent_address_is_in_any(const apr_array_header_t *blocks,
                             const struct sockaddr *address);

/* Converts an address of ::ffff:0:0/96 to its IPv4 address; false for
 * others. */
bool agent_address_unmap(struct sockaddr_in *out,
                         const struct sockaddr *address);

/*
 * Returns the current addresses of this host's interfaces, an array of
 * agent_address_block_t in pool; NULL on failure. Makes system calls; linear in
 * the number of addresses.
 */
apr_array_header_t *agent_address_list_own(apr_pool_t *pool);

/*
 * Whether the address is a public unicast address: not loopback, private,
 * link-local, multicast or documentation, and not an IPv6 form of an IPv4
 * address (mapped, 6to4, Teredo, NAT64), which might lead to one of these.
 * False for families other than AF_INET and AF_INET6.
 */
bool agent_address_is_public(const struct sockaddr *address);

#endif
