/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of waiters or slots per client address. */
#include "client_address.h"

#include <stdbool.h>

#include <apr_strings.h>
#include <arpa/inet.h>
#include <netinet/in.h>

apr_uint64_t agent_client_address_number(const apr_sockaddr_t *client)
{
    const unsigned char *bytes = client->ipaddr_ptr;
    int first = 0;
    int last = client->ipaddr_len;
    apr_uint64_t number = 0;

    if (client->family == APR_INET6) {
        bool mapped = IN6_IS_ADDR_V4MAPPED(&client->sa.sin6.sin6_addr);

        first = mapped ? 12 : 0;
        last = mapped ? 16 : 8;
    }
    for (int i = first; i < last; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

/* IPv6 networks have larger numbers than IPv4 addresses. */
const char *agent_client_address_print(apr_uint64_t number, apr_pool_t *pool)
{
    unsigned char bytes[16] = {0};
    char text[INET6_ADDRSTRLEN] = "?";
    bool is_v4 = number != 0 && number <= APR_UINT32_MAX;

    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(number >> (56 - 8 * i));
    }
    inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? bytes + 4 : bytes, text,
              sizeof(text));
    return apr_pstrcat(pool, text, is_v4 ? "" : "/64", NULL);
}

void agent_client_addresses_init(agent_client_addresses_t *addresses,
                                 apr_pool_t *pool)
{
    addresses->by_number = apr_hash_make(pool);
    addresses->free = NULL;
}

static agent_client_address_t *find(const agent_client_addresses_t *addresses,
                                    apr_uint64_t number)
{
    return apr_hash_get(addresses->by_number, &number, sizeof(number));
}

int agent_client_addresses_count(const agent_client_addresses_t *addresses,
                                 apr_uint64_t number)
{
    const agent_client_address_t *found = find(addresses, number);

    return found != NULL ? found->count : 0;
}

/* Entries are reused: a pool does not free memory. */
static agent_client_address_t *make(agent_client_addresses_t *addresses,
                                    apr_uint64_t number)
{
    agent_client_address_t *made = addresses->free;

    if (made != NULL) {
        addresses->free = made->next;
    }
    else {
        made = apr_palloc(apr_hash_pool_get(addresses->by_number),
                          sizeof(*made));
    }
    made->number = number;
    made->count = 0;
    apr_hash_set(addresses->by_number, &made->number, sizeof(made->number),
                 made);
    return made;
}

agent_client_address_t *agent_client_addresses_add(
    agent_client_addresses_t *addresses, apr_uint64_t number)
{
    agent_client_address_t *found = find(addresses, number);

    if (found == NULL) {
        found = make(addresses, number);
    }
    found->count++;
    return found;
}

void agent_client_addresses_remove(agent_client_addresses_t *addresses,
                                   apr_uint64_t number)
{
    agent_client_address_t *found = find(addresses, number);

    if (--found->count == 0) {
        apr_hash_set(addresses->by_number, &found->number,
                     sizeof(found->number), NULL);
        found->next = addresses->free;
        addresses->free = found;
    }
}
