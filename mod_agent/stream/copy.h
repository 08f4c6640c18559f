/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of threads, a piece in each turn. */
#ifndef AGENT_STREAM_COPY_H
#define AGENT_STREAM_COPY_H

#include "../http/call.h"

/*
 * Copies the thread call->ref and responds with the record of the copy. Other
 * requests have their turns between two pieces. When the client disconnects or
 * the child stops, the copy never becomes visible, and its pieces are swept two
 * minutes later. Returns what the handler returns to httpd.
 */
int agent_copy_respond(agent_call_t *call);

#endif
