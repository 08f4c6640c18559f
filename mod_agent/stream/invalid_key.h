/* SPDX-License-Identifier: Apache-2.0 */
/* Ends responses whose API key is no longer valid: it was revoked, has expired,
 * or its account was closed. Runs continue. */
#ifndef AGENT_STREAM_INVALID_KEY_H
#define AGENT_STREAM_INVALID_KEY_H

#include "../http/call.h"
#include "../wait/turn.h"

/*
 * Verifies the key again before a piece of a long request writes, if its last
 * verification is too old: AGENT_REASON_KEY_INVALID comes late when the query
 * for all keys fails or is delayed. Errors: those of call->renew; the
 * connection is then closed after the response, except with POOL_EXHAUSTED,
 * after which the request may continue.
 */
apr_status_t agent_invalid_key_check(agent_call_t *call);

/* Sets call->err to UNKNOWN_KEY, and closes the connection after the response.
 * Returns APR_EGENERAL. */
apr_status_t agent_invalid_key_set(agent_call_t *call);

/* Ends the response after AGENT_REASON_KEY_INVALID: with 401 or, if it has
 * begun, by an abort, which shows the client that it is incomplete. Returns
 * DONE. */
agent_turn_t agent_invalid_key_respond(agent_call_t *call, bool has_begun);

#endif
