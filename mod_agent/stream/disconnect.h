/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that disconnect before their response is complete. A request may ask
 * that its run is cancelled then. */
#ifndef AGENT_STREAM_DISCONNECT_H
#define AGENT_STREAM_DISCONNECT_H

#include "../http/call.h"

/* Reads the query's cancel_on_disconnect; *cancels is unchanged when it is
 * absent. Errors: INVALID, and CROSS_SITE for a cross-site request that sets
 * it. */
apr_status_t agent_disconnect_read_query(bool *cancels, agent_call_t *call);

/* Whether the body that creates a run has on_disconnect "cancel". */
bool agent_disconnect_read_body(const agent_call_t *call);

/* Ends the response after the client has disconnected: cancels the run
 * call->ref if `cancels`, and aborts the response. Overwrites call->err; an
 * error of the server is logged. */
void agent_disconnect_end(agent_call_t *call, bool cancels,
                          apr_pool_t *scratch);

#endif
