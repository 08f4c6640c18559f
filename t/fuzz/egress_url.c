/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/egress.c core/address.c core/origin.c */
/* A URL that a client names: the host of an accepted one is a name or a public
 * address, its port is allowed, and a second reading has the same result. */
#include "fuzz.h"

#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "../../mod_agent/core/address.h"
#include "../../mod_agent/core/egress.h"

static void check_host(const char *host)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    must(*host != '\0' && strpbrk(host, "[]/@?# ") == NULL);
    must(inet_pton(AF_INET, host, &v4.sin_addr) != 1
         || agent_address_is_public((struct sockaddr *)&v4));
    must(inet_pton(AF_INET6, host, &v6.sin6_addr) != 1
         || agent_address_is_public((struct sockaddr *)&v6));
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    const agent_egress_t *rule = agent_egress_make(pool);
    agent_egress_target_t target;
    agent_egress_target_t again;

    if (agent_egress_read_url(&target, text, pool) != NULL
        || agent_egress_check(rule, NULL, &target, pool) != NULL) {
        return;
    }
    must(target.port == 80 || target.port == 443);
    check_host(target.host);
    must(agent_egress_read_url(&again, text, pool) == NULL);
    must(strcmp(again.host, target.host) == 0 && again.port == target.port);
}
