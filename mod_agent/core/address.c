/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IP addresses; see address.h. The lists follow the special-purpose address
 * registries of IANA (RFC 6890). Public IPv6 addresses are those of the global
 * unicast block except for some; addresses that are not assigned yet are not
 * public.
 */
#include "address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const refused_v4[] = {
    /* This host on this network; private; shared by carriers; loopback. */
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8",
    /* Link-local, where clouds serve credentials; private. */
    "169.254.0.0/16", "172.16.0.0/12",
    /* Protocol assignments; documentation; 6to4 relays; private. */
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
    /* Benchmarks; documentation. */
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    /* Multicast, reserved, broadcast. */
    "224.0.0.0/3", NULL};

static const char *const global_v6[] = {"2000::/3", NULL};

static const char *const refused_v6[] = {
    /* Protocol assignments, Teredo among them; documentation; 6to4. */
    "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", NULL};

/* ::ffff:0:0/96. A block that contains it is an ordinary IPv6 block if its
 * prefix consists of zeros alone, as ::/0 does. */
static const unsigned char mapped_v6[12] = {0, 0, 0, 0, 0,    0,
                                            0, 0, 0, 0, 0xff, 0xff};
#define MAPPED_BITS  96
#define MAPPED_ZEROS 80

/* The length after the slash; -1 if it is invalid. */
static int read_bits(const char *text, int most)
{
    char *end;
    long bits = strtol(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || bits > most) {
        return -1;
    }
    return (int)bits;
}

/* Whether two addresses have their first bits in common. */
static bool begins_with(const unsigned char *bytes, const unsigned char *first,
                        int bits)
{
    int whole = bits / 8;
    int rest = bits % 8;
    int mask = (0xff00 >> rest) & 0xff;

    return memcmp(bytes, first, (size_t)whole) == 0
        && (rest == 0 || ((bytes[whole] ^ first[whole]) & mask) == 0);
}

static bool is_zero_after(const unsigned char *bytes, int bits, int most)
{
    for (int i = bits; i < most; i++) {
        if ((bytes[i / 8] & (0x80 >> i % 8)) != 0) {
            return false;
        }
    }
    return true;
}

/* False: the address or the length is invalid. Host bits are not checked. */
static bool parse_block(agent_address_block_t *out, int *most, const char *text)
{
    const char *slash = strchr(text, '/');
    size_t length = slash != NULL ? (size_t)(slash - text) : strlen(text);
    char address[INET6_ADDRSTRLEN];

    if (length >= sizeof(address)) {
        return false;
    }
    memcpy(address, text, length);
    address[length] = '\0';
    memset(out, 0, sizeof(*out));
    out->family = strchr(address, ':') != NULL ? AF_INET6 : AF_INET;
    *most = out->family == AF_INET6 ? 128 : 32;
    out->bits = slash != NULL ? read_bits(slash + 1, *most) : *most;
    return out->bits >= 0 && inet_pton(out->family, address, out->bytes) == 1;
}

bool agent_address_read_block(agent_address_block_t *out, const char *text)
{
    int most;

    return parse_block(out, &most, text)
        && is_zero_after(out->bytes, out->bits, most);
}

const char *agent_address_expected(const char *text)
{
    agent_address_block_t block;
    int most;

    if (*text == '[') {
        return "an address without brackets";
    }
    return parse_block(&block, &most, text)
        ? "a block with no bits after its length, like 10.0.0.0/8"
        : "addresses like 192.0.2.7, 10.0.0.0/8 or fd00::/8";
}

bool agent_address_unmap_block(agent_address_block_t *block)
{
    if (block->family != AF_INET6 || block->bits <= MAPPED_ZEROS
        || !begins_with(block->bytes, mapped_v6,
                        block->bits < MAPPED_BITS ? block->bits
                                                  : MAPPED_BITS)) {
        return true;
    }
    if (block->bits < MAPPED_BITS) {
        return false;
    }
    block->family = AF_INET;
    block->bits -= MAPPED_BITS;
    memmove(block->bytes, block->bytes + MAPPED_BITS / 8, 4);
    memset(block->bytes + 4, 0, sizeof(block->bytes) - 4);
    return true;
}

/* Returns the bytes of an address; NULL if it is of another family. */
static const unsigned char *bytes_of(const struct sockaddr *address, int family)
{
    if (address->sa_family != family) {
        return NULL;
    }
    return family == AF_INET6
        ? ((const struct sockaddr_in6 *)(const void *)address)
              ->sin6_addr.s6_addr
        : (const unsigned char *)&(
              (const struct sockaddr_in *)(const void *)address)
              ->sin_addr;
}

bool agent_address_is_in(const agent_address_block_t *block,
                         const struct sockaddr *address)
{
    const unsigned char *bytes = bytes_of(address, block->family);

    return bytes != NULL && begins_with(bytes, block->bytes, block->bits);
}

bool agent_address_is_in_any(const apr_array_header_t *blocks,
                             const struct sockaddr *address)
{
    for (int i = 0; i < blocks->nelts; i++) {
        if (agent_address_is_in(
                &APR_ARRAY_IDX(blocks, i, agent_address_block_t), address)) {
            return true;
        }
    }
    return false;
}

bool agent_address_unmap(struct sockaddr_in *out,
                         const struct sockaddr *address)
{
    const unsigned char *bytes = bytes_of(address, AF_INET6);

    if (bytes == NULL
        || !IN6_IS_ADDR_V4MAPPED(
            (const struct in6_addr *)(const void *)bytes)) {
        return false;
    }
    memset(out, 0, sizeof(*out));
    out->sin_family = AF_INET;
    memcpy(&out->sin_addr, bytes + 12, sizeof(out->sin_addr));
    return true;
}

apr_array_header_t *agent_address_list_own(apr_pool_t *pool)
{
    apr_array_header_t *own;
    struct ifaddrs *first;

    if (getifaddrs(&first) != 0) {
        return NULL;
    }
    own = apr_array_make(pool, 8, sizeof(agent_address_block_t));
    for (const struct ifaddrs *item = first; item; item = item->ifa_next) {
        int family = item->ifa_addr != NULL ? item->ifa_addr->sa_family
                                            : AF_UNSPEC;
        agent_address_block_t *block;

        if (family != AF_INET && family != AF_INET6) {
            continue;
        }
        block = apr_array_push(own);
        memset(block, 0, sizeof(*block));
        block->family = family;
        block->bits = family == AF_INET6 ? 128 : 32;
        memcpy(block->bytes, bytes_of(item->ifa_addr, family),
               (size_t)block->bits / 8);
    }
    freeifaddrs(first);
    return own;
}

static bool is_in_any(const char *const *texts, const struct sockaddr *address)
{
    agent_address_block_t block;

    for (; *texts != NULL; texts++) {
        if (agent_address_read_block(&block, *texts)
            && agent_address_is_in(&block, address)) {
            return true;
        }
    }
    return false;
}

bool agent_address_is_public(const struct sockaddr *address)
{
    switch (address->sa_family) {
    case AF_INET:
        return !is_in_any(refused_v4, address);
    case AF_INET6:
        return is_in_any(global_v6, address) && !is_in_any(refused_v6, address);
    default:
        return false;
    }
}
