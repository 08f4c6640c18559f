/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of requests that are refused before they have arrived. Over HTTP/1.1
 * the connection is closed after the response, and httpd lingers. Over HTTP/2
 * mod_http2 resets the stream as soon as the response has ended (RFC 9113,
 * 8.1); clients that are still sending drop the response then. So it is sent
 * at once, but ends when the body has been read and discarded.
 */
#ifndef AGENT_HTTP_UNREAD_H
#define AGENT_HTTP_UNREAD_H

#include <httpd.h>

#include "body_buffer.h"

/* Registers the filter; called with the module's hooks. */
void agent_unread_register(void);

/* Called in child_init, with the child's limit of threads that block. */
void agent_unread_start(agent_bodies_t *bodies);

/* Before the response: the body, or its rest, stays unread. */
void agent_unread_leave(request_rec *r);

/* Before a response that httpd may send without reading the body: does what is
 * said above for HTTP/2, and nothing for HTTP/1.1. */
void agent_unread_discard(request_rec *r);

#endif
