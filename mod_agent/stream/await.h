/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that are complete when a run has ended. */
#ifndef AGENT_STREAM_AWAIT_H
#define AGENT_STREAM_AWAIT_H

#include "../http/call.h"

/*
 * Responds 204 once the run call->ref has ended or is gone. Sends nothing
 * before that. Both functions return what the handler returns to httpd.
 */
int agent_await_end(agent_call_t *call);

/*
 * Responds with the run's final values once it has ended. Sends the headers of
 * a 200 at once and white space with each heartbeat, so that neither client nor
 * proxy times out. An unknown run is 404. cancels: cancels the run when the
 * client disconnects.
 */
int agent_await_values(agent_call_t *call, bool cancels);

#endif
