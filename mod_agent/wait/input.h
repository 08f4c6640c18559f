/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends while its request waits. Over TLS it may be a
 * close_notify: the client has left, although its TCP connection is open.
 */
#ifndef AGENT_WAIT_INPUT_H
#define AGENT_WAIT_INPUT_H

#include <httpd.h>

#include "waiter.h"

/* Whether a client may leave by what it sends. */
bool agent_input_may_end(conn_rec *c);

/*
 * When the waiter has taken INPUT, by the thread that owns the connection:
 * reads what there is, without blocking, and leaves requests unread. False: the
 * client is watched again.
 */
bool agent_input_has_left(conn_rec *c, agent_waits_t *waits,
                          const agent_waiter_t *waiter);

#endif
