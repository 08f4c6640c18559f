/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels the run of a client that disconnects, if the request asks for that.
 */
#ifndef AGENT_STREAM_DISCONNECT_H
#define AGENT_STREAM_DISCONNECT_H

#include "../http/call.h"

/* Reads the query's cancel_on_disconnect; *cancels is unchanged when it is
 * absent. Errors: INVALID, and CROSS_SITE for a cross-site request that sets
 * it. */
apr_status_t agent_disconnect_read_query(bool *cancels, agent_call_t *call);

/* True for on_disconnect "cancel" in the body that creates a run. */
bool agent_disconnect_read_body(const agent_call_t *call);

/* Cancels the run call->ref. Overwrites call->err; an error of the server is
 * logged. */
void agent_disconnect_cancel(agent_call_t *call, apr_pool_t *scratch);

#endif
