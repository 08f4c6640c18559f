/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses: blocks of them, and which ones are hosts of the Internet. */
#ifndef AGENT_CORE_ADDRESS_H
#define AGENT_CORE_ADDRESS_H

#include <stdbool.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <apr_tables.h>

/* Addresses that begin with the same bits. */
typedef struct agent_address_block_t {
    /* AF_INET or AF_INET6. */
    int family;
    int bits;
    /* In network order; 4 of them with AF_INET. */
    unsigned char bytes[16];
} agent_address_block_t;

/*
 * Reads "10.0.0.0/8", "fd00::/8" or one address without a length. Addresses
 * in the usual notation only; what follows the length must be zero. False for
 * anything else.
 */
bool agent_address_read_block(agent_address_block_t *out, const char *text);

/* What is wrong with a text that agent_address_read_block() does not read, to
 * stand after "expected"; constant. */
const char *agent_address_expected(const char *text);

/*
 * Turns a block of ::ffff:0:0/96 into the IPv4 block that it stands for, and
 * leaves all others as they are. False: it holds these addresses and a few
 * others, which no IPv4 block does.
 */
bool agent_address_unmap_block(agent_address_block_t *block);

/* Whether the block holds the address; an IPv4 block holds no IPv6 address,
 * also none that stands for an IPv4 one. */
bool agent_address_is_in(const agent_address_block_t *block,
                         const struct sockaddr *address);

/* Whether one of an array of agent_address_block_t holds the address. */
bool agent_address_is_in_any(const apr_array_header_t *blocks,
                             const struct sockaddr *address);

/* The IPv4 address that ::ffff:0:0/96 leads to; false: it is another one. */
bool agent_address_unmap(struct sockaddr_in *out,
                         const struct sockaddr *address);

/*
 * The addresses of this host's interfaces as they are now, an array of
 * agent_address_block_t in pool. NULL when the system does not tell. Asks the
 * kernel; linear in the number of addresses.
 */
apr_array_header_t *agent_address_list_own(apr_pool_t *pool);

/*
 * Whether the address is that of a host on the Internet: not this host, not a
 * private network, link, group or documentation, and no IPv6 form of an IPv4
 * address (mapped, 6to4, Teredo, NAT64), which might lead to one of those.
 * False for any family but AF_INET and AF_INET6.
 */
bool agent_address_is_public(const struct sockaddr *address);

#endif
