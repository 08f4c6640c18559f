/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output that never waits for the client: while it holds, what is written to a
 * connection is kept here and sent as the socket takes it.
 */
#ifndef AGENT_WAIT_OUTPUT_H
#define AGENT_WAIT_OUTPUT_H

#include <stdbool.h>

#include <httpd.h>

#include "client_socket.h"

typedef struct agent_output_t agent_output_t;

/* Registers the filter; once, when the module's hooks are. */
void agent_output_register(void);

/* In child_init, before any connection: the bytes that the child may hold for
 * clients that do not read. */
apr_status_t agent_output_start(apr_size_t budget_bytes, apr_pool_t *pool);

/* Puts the filter in front of the network, before the first request; in
 * c->pool. It lets everything through until it is told to hold. */
agent_output_t *agent_output_add(conn_rec *c);

/* Whether anything is held. Not once agent_output_wait() was called. */
bool agent_output_has_held(const agent_output_t *output);

/* The connection is given to the MPM: until a function of this header is called
 * for it again, what is held may be dropped, and the client cut. client: as in
 * agent_share_wait(). */
void agent_output_wait(const agent_output_t *output,
                       const agent_client_socket_t *client);

/* The connection is about to be closed: nothing is held for its client. */
void agent_output_drop(agent_output_t *output, conn_rec *c);

/* Begins to hold, or ends it: what is still held then goes out with the next
 * brigade. */
void agent_output_hold(agent_output_t *output, bool holds);

/*
 * Sends what the socket takes now. True when something is left: again when the
 * socket is writable. After an error, or when the client was cut, c->aborted is
 * set and nothing is left.
 */
bool agent_output_send(agent_output_t *output, conn_rec *c);

#endif
