/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of one thread to one server of the store, by hiredis. */
#ifndef RLR_NODE_H
#define RLR_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include "address.h"
#include "tls.h"
#include "wire.h"

typedef struct rlr_node_t {
    const rlr_connection_config_t *config;
    rlr_server_address_t at;
    redisContext *context; /* NULL: closed */
    uint32_t generation;   /* of the context */
    bool is_ready;         /* the script is loaded */
    bool is_lost;          /* the connection has ended, or the server lost
                              the script: calls may be sent again */
    uint64_t attempt_ms;   /* when it may be opened again; the caller's */
    bool has_failed;       /* to connect or to answer, since it was open */
    /* Recent failures, the last one, and when it may be opened again. */
    uint32_t failures;
    uint64_t failed_ms;
    uint64_t pause_until_ms;
    redisContext *probe; /* NULL: none */
    char sha[41];        /* of the script, once it was open */
    char error[512];
} rlr_node_t;

/* Sets a node that is not open. */
void rlr_node_init(rlr_node_t *node, const rlr_connection_config_t *config,
                   const rlr_server_address_t *at);

/* Connects, authenticates, and loads the script; does nothing if it is open.
 * Returns NULL, or the error, valid until the next one. Blocks for half a
 * second for each of its calls at most. */
const char *rlr_node_open(rlr_node_t *node);
void rlr_node_close(rlr_node_t *node);

/* Whether a server that has failed answers again: sends a probe over a separate
 * connection, or reads its reply, and never blocks. */
bool rlr_node_is_back(rlr_node_t *node);

/* Whether the server, or something on the way, has closed the connection. */
bool rlr_node_has_ended(const rlr_node_t *node);

/* Closes the connection, and sets its error. */
void rlr_node_reject(rlr_node_t *node, const char *error);

/* Queues a command; nothing is sent. */
void rlr_node_add(rlr_node_t *node, const rlr_wire_command_t *command);
void rlr_node_add_words(rlr_node_t *node, const char *const *words, int count);

/* Sends what is queued. Returns NULL or the error; it is then closed. */
const char *rlr_node_flush(rlr_node_t *node);

/* Reads what has come, and returns the next reply of it, which the caller
 * frees; NULL in *reply: none is complete. Both as flush. */
const char *rlr_node_read(rlr_node_t *node);
const char *rlr_node_next(rlr_node_t *node, redisReply **reply);

/* Closes a connection whose server does not answer. */
void rlr_node_give_up(rlr_node_t *node);

/* Waits for the next reply, for RLR_PERIOD_CALL_MS at most; the caller frees
 * it. Returns NULL or the error; it is then closed. */
const char *rlr_node_receive(rlr_node_t *node, redisReply **reply);

#endif
