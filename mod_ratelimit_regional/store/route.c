/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a node for each server named by the address or by a redirection. */
#include "route.h"

#include <stdlib.h>
#include <string.h>

#include <apr_strings.h>

#include "../counter/clock.h"

/* A node that cannot be opened is not tried again for this long. */
#define RETRY_MS 2000U

void rlr_route_init(rlr_route_t *route, const rlr_connection_config_t *config,
                    apr_pool_t *pool)
{
    memset(route, 0, sizeof(*route));
    route->config = config;
    route->pool = pool;
    for (int i = 0; config->address.kind != RLR_ADDRESS_SENTINEL
         && i < config->address.count;
         i++) {
        rlr_node_t *node = apr_palloc(pool, sizeof(*node));

        rlr_node_init(node, config, &config->address.servers[i]);
        route->nodes[route->count++] = node;
    }
}

void rlr_route_close(rlr_route_t *route)
{
    for (uint32_t i = 0; i < route->count; i++) {
        rlr_node_close(route->nodes[i]);
    }
}

void rlr_route_set(rlr_route_t *route, const rlr_server_address_t *server)
{
    rlr_node_t *node = route->nodes[0];

    if (server == NULL) {
        rlr_route_close(route);
        return;
    }
    if (node == NULL) {
        node = apr_palloc(route->pool, sizeof(*node));
        rlr_node_init(node, route->config, server);
        route->nodes[route->count++] = node;
    }
    else if (!rlr_address_equal(&node->at, server)) {
        rlr_node_close(node);
        node->at = *server;
    }
}

static const char *open_node(const rlr_route_t *route, rlr_node_t *node)
{
    bool is_cluster = route->config->address.kind == RLR_ADDRESS_CLUSTER;
    const char *error;

    if (node->context != NULL) {
        return NULL;
    }
    if (is_cluster
        && (rlr_clock_now().floor_ms < node->attempt_ms
            || rlr_clock_now().floor_ms < node->pause_until_ms)) {
        return node->error;
    }
    /* To wait for a node that hangs would hold up the partitions of others. */
    error = !is_cluster || rlr_node_is_back(node) ? rlr_node_open(node)
                                                  : node->error;
    if (error != NULL && node->probe == NULL) {
        node->attempt_ms = rlr_clock_now().floor_ms + RETRY_MS;
    }
    return error;
}

rlr_node_t *rlr_route_find(rlr_route_t *route, uint32_t partition,
                           const char **error)
{
    rlr_node_t *known = route->node_of[partition];

    if (known != NULL) {
        *error = open_node(route, known);
        if (*error == NULL) {
            return known;
        }
        /* Another node knows which one has replaced it. */
        route->node_of[partition] = NULL;
    }
    for (uint32_t i = 0; i < route->count; i++) {
        if (route->nodes[i]->context != NULL) {
            return route->nodes[i];
        }
    }
    for (uint32_t i = 0; i < route->count; i++) {
        *error = open_node(route, route->nodes[i]);
        if (*error == NULL) {
            return route->nodes[i];
        }
    }
    return NULL;
}

/* ---- Redirections ---- */

static bool has_prefix(const redisReply *reply, const char *prefix)
{
    return reply->type == REDIS_REPLY_ERROR
        && strncmp(reply->str, prefix, strlen(prefix)) == 0;
}

bool rlr_route_is_redirection(const redisReply *reply)
{
    return has_prefix(reply, "MOVED ") || has_prefix(reply, "ASK ");
}

/* Reads the end of "MOVED SLOT HOST:PORT"; without a host it is that of the
 * node that answered. An IPv6 address has no brackets. */
static bool read_target(rlr_server_address_t *target, const rlr_node_t *from,
                        const char *text)
{
    const char *host = strrchr(text, ' ');
    const char *colon = strrchr(text, ':');
    size_t length;
    long port;

    if (host == NULL || colon == NULL || colon < host + 1) {
        return false;
    }
    host++;
    length = (size_t)(colon - host);
    port = strtol(colon + 1, NULL, 10);
    if (length >= sizeof(target->host) || port < 1 || port > 65535) {
        return false;
    }
    memcpy(target->host, host, length);
    target->host[length] = '\0';
    target->port = (int)port;
    if (length == 0) {
        apr_cpystrn(target->host, from->at.host, sizeof(target->host));
    }
    return true;
}

static bool has_partition(const rlr_route_t *route, const rlr_node_t *node)
{
    for (uint32_t i = 0; i < RLR_ROUTE_HASHES; i++) {
        if (route->node_of[i] == node) {
            return true;
        }
    }
    return false;
}

/* Returns a node that is closed and has no partition, of those that
 * redirections have named, or NULL. */
static rlr_node_t *find_unused(const rlr_route_t *route)
{
    for (uint32_t i = (uint32_t)route->config->address.count; i < route->count;
         i++) {
        if (route->nodes[i]->context == NULL
            && !has_partition(route, route->nodes[i])) {
            return route->nodes[i];
        }
    }
    return NULL;
}

/* Returns the node of the server; a new one takes the place of an unused
 * one, if there are too many. NULL: no room. */
static rlr_node_t *get_node(rlr_route_t *route,
                            const rlr_server_address_t *target)
{
    rlr_node_t *node = NULL;

    for (uint32_t i = 0; i < route->count; i++) {
        if (rlr_address_equal(&route->nodes[i]->at, target)) {
            return route->nodes[i];
        }
    }
    if (route->count < RLR_ROUTE_NODES_MAX) {
        node = apr_palloc(route->pool, sizeof(*node));
        rlr_node_init(node, route->config, target);
        route->nodes[route->count++] = node;
        return node;
    }
    node = find_unused(route);
    if (node != NULL) {
        rlr_node_close(node);
        rlr_node_init(node, route->config, target);
    }
    return node;
}

rlr_node_t *rlr_route_follow(rlr_route_t *route, uint32_t partition,
                             const rlr_node_t *from, const redisReply *reply,
                             bool *asking, const char **error)
{
    rlr_server_address_t target;
    rlr_node_t *node = NULL;

    *asking = has_prefix(reply, "ASK ");
    *error = "a redirection that names no node";
    if (read_target(&target, from, reply->str)) {
        *error = "too many nodes";
        node = get_node(route, &target);
    }
    if (node != NULL) {
        *error = open_node(route, node);
    }
    if (node == NULL || *error != NULL) {
        return NULL;
    }
    if (!*asking) {
        route->node_of[partition] = node;
    }
    return node;
}
