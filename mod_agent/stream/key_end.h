/* SPDX-License-Identifier: Apache-2.0 */
/* Responses whose API key ends before they do: it was revoked, has expired, or
 * its account was closed. Runs go on. */
#ifndef AGENT_STREAM_KEY_END_H
#define AGENT_STREAM_KEY_END_H

#include "../http/call.h"
#include "../wait/turn.h"

/*
 * Before a piece of a long request writes: verifies the key again if the last
 * time is too long ago, since AGENT_REASON_KEY_ENDED is late where the
 * statement of all keys fails or waits. Errors: those of call->renew; the
 * connection is then closed after the response, except with POOL_EXHAUSTED,
 * after which the request may go on.
 */
apr_status_t agent_key_end_check(agent_call_t *call);

/* Sets call->err to UNKNOWN_KEY, and closes the connection after the response.
 * Returns APR_EGENERAL. */
apr_status_t agent_key_end_set(agent_call_t *call);

/* Ends the response after AGENT_REASON_KEY_ENDED: with 401 or, has_begun, so
 * that the client sees that it is incomplete. Returns DONE. */
agent_turn_t agent_key_end_respond(agent_call_t *call, bool has_begun);

#endif
