/* SPDX-License-Identifier: Apache-2.0 */
/* How much a request's line and headers may be. */
#ifndef AGENT_HTTP_HEAD_H
#define AGENT_HTTP_HEAD_H

#include "call.h"

/*
 * The line and all headers together, as nginx has it. httpd bounds each of them
 * (LimitRequestLine, LimitRequestFieldSize) and their number
 * (LimitRequestFields): 800 KB, which a request that waits would keep.
 */
#define AGENT_HEAD_BYTES ((apr_size_t)32 * 1024)

/* Before the body is received. Error: HEAD_TOO_LARGE, after which the
 * connection is closed: nobody reads the body. */
apr_status_t agent_head_check(agent_call_t *call);

#endif
