/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An output filter that never blocks on the client. While it holds output, data
 * is kept here and written as the socket accepts it.
 */
#ifndef AGENT_WAIT_OUTPUT_H
#define AGENT_WAIT_OUTPUT_H

#include <stdbool.h>

#include <httpd.h>

#include "client_socket.h"

typedef struct agent_output_t agent_output_t;

/* Registers the filter; with the module's hooks. */
void agent_output_register(void);

/* In child_init. budget_bytes: output that the child may hold for clients that
 * do not read. */
apr_status_t agent_output_start(apr_size_t budget_bytes, apr_pool_t *pool);

/* Returns how many more bytes the child may hold for such clients. */
apr_size_t agent_output_room(void);

/* Adds the filter before the network filter, in c->pool; before the first
 * request. It passes all data on until agent_output_hold(). */
agent_output_t *agent_output_add(conn_rec *c);

/* To be called when the connection is given to the MPM. Until the next call of
 * one of these functions its data may be dropped and the client disconnected.
 * client: as in agent_budget_share_wait(). */
void agent_output_wait(const agent_output_t *output,
                       const agent_client_socket_t *client);

/* Drops the data of a connection that is about to be closed. */
void agent_output_drop(agent_output_t *output, conn_rec *c);

/* Sets the deployment that the held output counts for; NULL: none. */
void agent_output_set_owner(const agent_output_t *output,
                            const char *deployment);

/* Begins or ends holding output. Data still held at the end is sent with the
 * next brigade. */
void agent_output_hold(agent_output_t *output, bool holds);

/* Charges the budget the larger of `bytes`, the text of the response, and the
 * buffered data, until the response is sent or its request ends. 0: it is sent.
 */
void agent_output_charge(agent_output_t *output, apr_size_t bytes);

/*
 * Writes what the socket accepts now. True: data is left, to be sent when the
 * socket is writable. After an error, or if the client was evicted, c->aborted
 * is set and no data is left.
 */
bool agent_output_send(agent_output_t *output, conn_rec *c);

#endif
