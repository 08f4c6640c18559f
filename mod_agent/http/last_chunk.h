/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An input filter below httpd's that keeps the end of a chunked body back until
 * all of it is there.
 *
 * httpd reads chunks without blocking when it is asked to, but once it has seen
 * that no more follow it reads the trailers as it reads headers: a thread waits
 * for each line of them. Behind this filter they are there when it begins.
 */
#ifndef AGENT_HTTP_LAST_CHUNK_H
#define AGENT_HTTP_LAST_CHUNK_H

#include <httpd.h>

/* Registers the filter; once, when the module's hooks are. */
void agent_last_chunk_register(void);

/* For a request with a chunked body of which nothing was read yet, and which is
 * read without blocking to its end. */
void agent_last_chunk_add(request_rec *r);

#endif
