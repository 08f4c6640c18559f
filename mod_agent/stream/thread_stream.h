/* SPDX-License-Identifier: Apache-2.0 */
/* The event stream of a thread. */
#ifndef AGENT_STREAM_THREAD_STREAM_H
#define AGENT_STREAM_THREAD_STREAM_H

#include "../http/call.h"

/*
 * Streams the events of all runs of the thread call->ref, also of later ones,
 * until the client disconnects or the thread is deleted. Reads Last-Event-ID
 * and stream_mode. Returns what the handler returns to httpd.
 */
int agent_thread_stream(agent_call_t *call);

#endif
