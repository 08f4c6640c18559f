/* SPDX-License-Identifier: Apache-2.0 */
/* The request's wish to cancel its run when its client disconnects. */
#ifndef AGENT_STREAM_DISCONNECT_H
#define AGENT_STREAM_DISCONNECT_H

#include "../http/call.h"

/* Reads the query's cancel_on_disconnect; *cancels stays when it is absent. A
 * cross-site request that sets it is refused: CROSS_SITE. */
apr_status_t agent_disconnect_read_query(bool *cancels, agent_call_t *call);

/* True for on_disconnect "cancel" in the body that creates a run. */
bool agent_disconnect_read_body(const agent_call_t *call);

/* Cancels the run of call->ref; an error is logged. */
void agent_disconnect_cancel(agent_call_t *call, apr_pool_t *scratch);

#endif
