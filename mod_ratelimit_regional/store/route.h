/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a cluster, and which of them has a partition: learned from their
 * redirections. A server alone is a cluster of one node. */
#ifndef RLR_ROUTE_H
#define RLR_ROUTE_H

#include "../protocol/shared.h"
#include "node.h"

#define RLR_ROUTE_NODES_MAX 64

/* The hash with the rules of hosts comes after those of the partitions; in a
 * cluster each has a slot of its own. */
#define RLR_ROUTE_RULES  RLR_SHARED_PARTITIONS
#define RLR_ROUTE_HASHES (RLR_SHARED_PARTITIONS + 1U)

typedef struct rlr_route_t {
    const rlr_connection_config_t *config;
    apr_pool_t *pool;
    uint32_t count;
    rlr_node_t *nodes[RLR_ROUTE_NODES_MAX];
    rlr_node_t *node_of[RLR_ROUTE_HASHES]; /* NULL: not known */
} rlr_route_t;

/* Sets a route with the servers of the address, in pool; none with Sentinel. */
void rlr_route_init(rlr_route_t *route, const rlr_connection_config_t *config,
                    apr_pool_t *pool);
void rlr_route_close(rlr_route_t *route);

/* Sets the only server; another one is closed. NULL: closes it. */
void rlr_route_set(rlr_route_t *route, const rlr_server_address_t *server);

/* Returns an open node for the partition, which may answer with a redirection;
 * NULL: none can be opened, for the reason in *error. */
rlr_node_t *rlr_route_find(rlr_route_t *route, uint32_t partition,
                           const char **error);

/* Whether the reply is a redirection, MOVED or ASK. */
bool rlr_route_is_redirection(const redisReply *reply);

/* Returns the open node that a redirection of `from` names; *asking: for this
 * command only, after ASKING. NULL: it cannot be opened, as find. */
rlr_node_t *rlr_route_follow(rlr_route_t *route, uint32_t partition,
                             const rlr_node_t *from, const redisReply *reply,
                             bool *asking, const char **error);

#endif
