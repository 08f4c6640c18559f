/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that a client sends while its request waits. Over TLS it may be a
 * close_notify: the client has disconnected, although its TCP connection is
 * open.
 */
#ifndef AGENT_WAIT_INPUT_H
#define AGENT_WAIT_INPUT_H

#include <httpd.h>

#include "waiter.h"

/* Whether the client's data may contain the end of the connection (TLS), so
 * that it must be read. */
bool agent_input_may_close(conn_rec *c);

/*
 * Reads available data without blocking and without consuming requests. To be
 * called by the connection's owner after the waiter took INPUT. True: the
 * client has disconnected. False: it is watched again.
 */
bool agent_input_is_closed(conn_rec *c, agent_waiter_registry_t *registry,
                           const agent_waiter_t *waiter);

#endif
