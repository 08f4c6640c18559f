/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An input filter below httpd's that holds back the last chunk of a body until
 * its trailers have arrived.
 *
 * httpd can read chunks without blocking, but reads the trailers after the last
 * chunk like headers, blocking for each line. With this filter they have
 * arrived when httpd reads the last chunk.
 */
#ifndef AGENT_HTTP_LAST_CHUNK_H
#define AGENT_HTTP_LAST_CHUNK_H

#include <httpd.h>

/* Registers the filter; called with the module's hooks. */
void agent_last_chunk_register(void);

/* Adds the filter to a request whose chunked body is unread and will be read to
 * its end without blocking. */
void agent_last_chunk_add(request_rec *r);

#endif
