/* SPDX-License-Identifier: Apache-2.0 */
/* The export of an account. */
#ifndef AGENT_STREAM_EXPORT_H
#define AGENT_STREAM_EXPORT_H

#include "../http/call.h"

/* Responds with all rows of the account of the request's key, as lines of JSON,
 * in parts as the client reads; 503 when no further request may wait. Returns
 * what the handler returns to httpd. */
int agent_export_respond(agent_call_t *call)
    __attribute__((warn_unused_result));

#endif
