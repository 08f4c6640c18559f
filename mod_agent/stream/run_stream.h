/* SPDX-License-Identifier: Apache-2.0 */
/* The event stream of one run. */
#ifndef AGENT_STREAM_RUN_STREAM_H
#define AGENT_STREAM_RUN_STREAM_H

#include "../http/call.h"

/*
 * Streams the events of the run call->ref, stored and new, to its end. Reads
 * Last-Event-ID, checkpoint_id, stream_mode, namespace and
 * cancel_on_disconnect. Returns what the handler returns to httpd.
 */
int agent_run_stream(agent_call_t *call);

/* Streams the run that this request has created: from its first event, in the
 * modes and with the on_disconnect of its body and the namespaces of its query.
 */
int agent_run_stream_created(agent_call_t *call);

#endif
