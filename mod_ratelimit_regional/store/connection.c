/* SPDX-License-Identifier: Apache-2.0 */
/* Sends calls to the node of each partition and follows redirections. Each call
 * follows an ECHO of its number: after a reply that was lost or repeated on the
 * way, all later ones would be taken for those of other calls. */
#include "connection.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <apr_strings.h>

#include "route.h"
#include "sentinel.h"

/* A slot that moves redirects twice. */
#define REDIRECTIONS_MAX 5
#define NUMBER_SIZE      24

/* A call under way. */
typedef struct pending_t {
    bool is_used;
    uint32_t partition;
    rlr_wire_command_t command;
    rlr_node_t *node;
    uint32_t generation; /* of the node, when it was sent */
    uint64_t order;      /* of all that were sent */
    bool is_echoed;      /* the reply to ECHO has come */
    bool is_asking;      /* the reply to ASKING comes before the call's */
    redisReply *reply;
    const char *error; /* there will be no reply, or NULL */
} pending_t;

struct rlr_connection_t {
    const rlr_connection_config_t *config;
    rlr_route_t route;
    rlr_sentinel_t *sentinel;            /* NULL: none */
    pending_t pending[RLR_ROUTE_HASHES]; /* one of each */
    uint64_t order;
    char error[1024];
};

static apr_status_t close_with_pool(void *data)
{
    rlr_connection_t *connection = data;

    rlr_route_close(&connection->route);
    return APR_SUCCESS;
}

rlr_connection_t *rlr_connection_make(const rlr_connection_config_t *config,
                                      apr_pool_t *pool)
{
    rlr_connection_t *connection = apr_pcalloc(pool, sizeof(*connection));

    connection->config = config;
    rlr_route_init(&connection->route, config, pool);
    if (config->address.kind == RLR_ADDRESS_SENTINEL) {
        connection->sentinel = rlr_sentinel_make(config, pool);
    }
    apr_pool_cleanup_register(pool, connection, close_with_pool,
                              apr_pool_cleanup_null);
    return connection;
}

/* ---- Calls under way ---- */

static bool is_under_way(const pending_t *pending)
{
    return pending->is_used && pending->error == NULL && pending->reply == NULL
        && pending->node->context != NULL
        && pending->node->generation == pending->generation;
}

/* Returns the call whose reply comes next from the node; NULL: none. */
static pending_t *find_oldest(rlr_connection_t *connection,
                              const rlr_node_t *node)
{
    pending_t *oldest = NULL;

    for (uint32_t i = 0; i < RLR_ROUTE_HASHES; i++) {
        pending_t *other = &connection->pending[i];

        if (is_under_way(other) && other->node == node
            && (oldest == NULL || other->order < oldest->order)) {
            oldest = other;
        }
    }
    return oldest;
}

/* ---- Opening ---- */

/* Closes connections that have ended while no call was under way. */
static void close_ended(rlr_connection_t *connection)
{
    for (uint32_t i = 0; i < connection->route.count; i++) {
        rlr_node_t *node = connection->route.nodes[i];

        if (node->context != NULL && find_oldest(connection, node) == NULL
            && rlr_node_has_ended(node)) {
            rlr_node_close(node);
        }
    }
}

const char *rlr_connection_open(rlr_connection_t *connection)
{
    const char *error = NULL;

    close_ended(connection);
    if (connection->sentinel != NULL) {
        rlr_server_address_t primary;

        error = rlr_sentinel_find(connection->sentinel, &primary);
        rlr_route_set(&connection->route, error == NULL ? &primary : NULL);
    }
    if (error != NULL) {
        return error;
    }
    return rlr_route_find(&connection->route, 0, &error) != NULL ? NULL : error;
}

bool rlr_connection_has_nodes(const rlr_connection_t *connection)
{
    return connection->config->address.kind == RLR_ADDRESS_CLUSTER;
}

/* ---- Sending ---- */

static void send_to(rlr_connection_t *connection, pending_t *pending,
                    rlr_node_t *node)
{
    static const char *const asking[] = {"ASKING"};
    char number[NUMBER_SIZE];
    const char *const echo[] = {"ECHO", number};

    pending->node = node;
    pending->generation = node->generation;
    pending->order = ++connection->order;
    pending->is_echoed = false;
    snprintf(number, sizeof(number), "%" PRIu64, pending->order);
    rlr_node_add_words(node, echo, 2);
    if (pending->is_asking) {
        rlr_node_add_words(node, asking, 1);
    }
    rlr_node_add(node, &pending->command);
}

void rlr_connection_add(rlr_connection_t *connection,
                        const rlr_message_call_t *call, uint32_t partition,
                        apr_pool_t *scratch)
{
    pending_t *pending = &connection->pending[partition];
    rlr_node_t *node;

    memset(pending, 0, sizeof(*pending));
    pending->is_used = true;
    pending->partition = partition;
    node = rlr_route_find(&connection->route, partition, &pending->error);
    if (node != NULL) {
        pending->error = NULL;
        rlr_wire_encode(&pending->command, call, partition, node->sha, scratch);
        send_to(connection, pending, node);
    }
}

void rlr_connection_flush(rlr_connection_t *connection)
{
    for (uint32_t i = 0; i < RLR_ROUTE_HASHES; i++) {
        if (is_under_way(&connection->pending[i])) {
            rlr_node_flush(connection->pending[i].node);
        }
    }
}

/* ---- Receiving ---- */

static bool is_number(const redisReply *reply, uint64_t number)
{
    char text[NUMBER_SIZE];

    snprintf(text, sizeof(text), "%" PRIu64, number);
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, text) == 0;
}

/* Takes the next reply of the node, which is one to the call if nothing was
 * lost or repeated. */
static void take_reply(pending_t *pending, redisReply *reply)
{
    bool is_expected;

    if (pending->is_echoed && !pending->is_asking) {
        pending->reply = reply;
        return;
    }
    if (!pending->is_echoed) {
        is_expected = is_number(reply, pending->order);
        pending->is_echoed = true;
    }
    else {
        is_expected = reply->type == REDIS_REPLY_STATUS;
        pending->is_asking = false;
    }
    if (!is_expected) {
        rlr_node_reject(pending->node,
                        reply->type == REDIS_REPLY_ERROR
                            ? reply->str
                            : "a reply to another call");
    }
    freeReplyObject(reply);
}

/* Receives from the call's node until its reply is there; replies to other
 * calls are kept. */
static void fetch(rlr_connection_t *connection, pending_t *pending)
{
    rlr_node_t *node = pending->node;

    while (is_under_way(pending)) {
        pending_t *oldest = find_oldest(connection, node);
        redisReply *reply;

        /* This call is under way, so there is an oldest. */
        if (oldest == NULL || rlr_node_receive(node, &reply) != NULL) {
            break;
        }
        take_reply(oldest, reply);
    }
    if (pending->error == NULL && pending->reply == NULL) {
        pending->error = node->error;
    }
}

/* Sends the call to the node that its reply names. */
static void redirect(rlr_connection_t *connection, pending_t *pending)
{
    bool is_asking;
    rlr_node_t *node = rlr_route_follow(&connection->route, pending->partition,
                                        pending->node, pending->reply,
                                        &is_asking, &pending->error);

    freeReplyObject(pending->reply);
    pending->reply = NULL;
    if (node != NULL) {
        pending->error = NULL;
        pending->is_asking = is_asking;
        send_to(connection, pending, node);
        rlr_node_flush(node);
    }
}

/* Keeps the text, with the server where there are several. */
static const char *describe(rlr_connection_t *connection,
                            const pending_t *pending, const char *what,
                            const char *text)
{
    if (connection->config->address.kind == RLR_ADDRESS_SERVER
        || pending->node == NULL) {
        snprintf(connection->error, sizeof(connection->error), "%s%s", what,
                 text);
    }
    else {
        snprintf(connection->error, sizeof(connection->error), "%s:%d: %s%s",
                 pending->node->at.host, pending->node->at.port, what, text);
    }
    return connection->error;
}

static const char *decode(rlr_connection_t *connection, pending_t *pending,
                          rlr_message_reply_t *reply, uint32_t item_count)
{
    const char *error;

    rlr_wire_decode(reply, item_count, pending->reply, &error);
    if (error != NULL) {
        error = describe(connection, pending, "script: ", error);
        /* Another connection loads the script again, or finds the primary. */
        if (strstr(error, "NOSCRIPT") != NULL
            || strstr(error, "READONLY") != NULL) {
            rlr_node_close(pending->node);
            pending->node->is_lost = strstr(error, "NOSCRIPT") != NULL;
        }
    }
    freeReplyObject(pending->reply);
    pending->reply = NULL;
    return error;
}

/* The nodes with a call under way, each once. */
static uint32_t list_nodes(rlr_node_t **nodes, rlr_connection_t *connection)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < RLR_ROUTE_HASHES; i++) {
        pending_t *pending = &connection->pending[i];

        if (is_under_way(pending)
            && find_oldest(connection, pending->node) == pending) {
            nodes[count++] = pending->node;
        }
    }
    return count;
}

/* Takes all replies that the node has sent. */
static void read_node(rlr_connection_t *connection, rlr_node_t *node)
{
    pending_t *oldest = find_oldest(connection, node);
    redisReply *reply = NULL;

    if (rlr_node_read(node) != NULL) {
        return;
    }
    while (oldest != NULL && rlr_node_next(node, &reply) == NULL
           && reply != NULL) {
        take_reply(oldest, reply);
        oldest = find_oldest(connection, node);
    }
}

void rlr_connection_poll(rlr_connection_t *connection, int wait_ms)
{
    rlr_node_t *nodes[RLR_ROUTE_HASHES];
    struct pollfd wanted[RLR_ROUTE_HASHES];
    uint32_t count = list_nodes(nodes, connection);

    for (uint32_t i = 0; i < count; i++) {
        wanted[i] = (struct pollfd){nodes[i]->context->fd, POLLIN, 0};
    }
    if (count == 0 || poll(wanted, count, wait_ms) <= 0) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (wanted[i].revents != 0) {
            read_node(connection, nodes[i]);
        }
    }
}

bool rlr_connection_has_reply(const rlr_connection_t *connection,
                              uint32_t partition)
{
    return !is_under_way(&connection->pending[partition]);
}

void rlr_connection_expire(rlr_connection_t *connection, uint32_t partition)
{
    if (is_under_way(&connection->pending[partition])) {
        rlr_node_give_up(connection->pending[partition].node);
    }
}

const char *rlr_connection_receive(rlr_connection_t *connection,
                                   uint32_t partition,
                                   rlr_message_reply_t *reply,
                                   uint32_t item_count)
{
    pending_t *pending = &connection->pending[partition];
    const char *error;

    reply->status = RLR_MESSAGE_FAILED;
    fetch(connection, pending);
    for (int i = 0; i < REDIRECTIONS_MAX && pending->reply != NULL
         && rlr_route_is_redirection(pending->reply);
         i++) {
        redirect(connection, pending);
        fetch(connection, pending);
    }
    error = pending->reply != NULL
        ? decode(connection, pending, reply, item_count)
        : describe(connection, pending, "", pending->error);
    pending->is_used = false;
    return error;
}

bool rlr_connection_is_lost(const rlr_connection_t *connection,
                            uint32_t partition)
{
    const pending_t *pending = &connection->pending[partition];

    return pending->node != NULL && pending->node->is_lost
        && pending->node->generation != pending->generation;
}
