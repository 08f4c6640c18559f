/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that a graph's code computes: updates of a thread's state,
 * descriptions of graphs. */
#ifndef AGENT_STREAM_UPDATE_H
#define AGENT_STREAM_UPDATE_H

#include "../http/call.h"

/*
 * Waits for the call call->ref (model/state.h), without a thread, for
 * AgentCallTimeout at most, and responds with its result; nothing is sent
 * before that. The call is ended after that time or when the child stops; it
 * continues when only the client disconnects. Returns what the handler returns
 * to httpd.
 */
int agent_update_await(agent_call_t *call);

#endif
