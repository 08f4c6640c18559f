/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of requests that are refused before they have arrived. Over HTTP/1.1
 * the connection is closed after the response, and httpd lingers. Over HTTP/2
 * mod_http2 resets the stream as soon as the response has ended (RFC 9113,
 * 8.1); clients that are still sending drop the response then. So it is sent at
 * once, but ends when the body has been read and discarded, which takes a
 * thread: until 1 s passes without data, for 10 s and 8 MB at most, and not
 * while the child ends. Few threads discard at a time, at most one for a
 * connection and two for an address; the streams of further requests are reset.
 */
#ifndef AGENT_HTTP_UNREAD_H
#define AGENT_HTTP_UNREAD_H

#include <stdbool.h>

#include <httpd.h>

/* Registers the filter; called with the module's hooks. */
void agent_unread_register(void);

/* Called in child_init. slots: how many threads may discard at a time, at
 * least 1. */
apr_status_t agent_unread_start(int slots, bool (*is_child_ending)(void),
                                apr_pool_t *pool);

/* Called before the response to a request whose body, or the rest of it, stays
 * unread. */
void agent_unread_leave(request_rec *r);

/* Called when a Require denies the request. Unless another Require admits it,
 * httpd responds without reading the body; over HTTP/2 that is then read and
 * discarded. No effect over HTTP/1.1. */
void agent_unread_deny(request_rec *r);

/* Called when another Require has admitted the request: its handler reads the
 * body, or leaves it unread. */
void agent_unread_admit(request_rec *r);

#endif
