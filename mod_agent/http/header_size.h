/* SPDX-License-Identifier: Apache-2.0 */
/* The size limit of a request's line and headers. */
#ifndef AGENT_HTTP_HEADER_SIZE_H
#define AGENT_HTTP_HEADER_SIZE_H

#include "call.h"

/*
 * Of the line and all headers together, as in nginx. httpd limits the size of
 * each (LimitRequestLine, LimitRequestFieldSize) and their number
 * (LimitRequestFields), which allows 800 KB; a waiting request keeps them all.
 */
#define AGENT_HEADER_SIZE_MAX ((apr_size_t)32 * 1024)

/* Checks the limit, before the body is received. Error: HEAD_TOO_LARGE, which
 * also closes the connection, since the body is not read. */
apr_status_t agent_header_size_check(agent_call_t *call);

#endif
