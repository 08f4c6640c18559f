/* SPDX-License-Identifier: Apache-2.0 */
/* The responses to requests that a graph's code answers: updates of a thread's
 * state, descriptions of graphs. */
#ifndef AGENT_STREAM_UPDATE_H
#define AGENT_STREAM_UPDATE_H

#include "../http/call.h"

/*
 * Waits for the call call->ref (model/state.h), without a thread, for
 * AgentCallTimeout at most, and responds with its result; nothing is sent
 * before that. The call is ended when its time is over or the child stops; when
 * only the client disconnects it continues. Returns what the handler returns to
 * httpd.
 */
int agent_update_await(agent_call_t *call);

#endif
