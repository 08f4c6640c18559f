/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that come when a run has ended. */
#ifndef AGENT_HANDLERS_AWAIT_H
#define AGENT_HANDLERS_AWAIT_H

#include "../http/call.h"

/*
 * Waits until the run of call->ids has ended or is gone, then answers 204.
 * No byte is sent before that.
 */
int agent_await_end(agent_call_t *call);

/*
 * Answers the run's final values once it has ended. Until then: the headers of
 * a 200 at once and white space every 5 s, so that neither client nor proxy
 * gives up. A run that is not there is 404. cancels: the run is cancelled when
 * the client leaves.
 */
int agent_await_values(agent_call_t *call, bool cancels);

#endif
