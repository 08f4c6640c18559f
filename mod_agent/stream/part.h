/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that are read and sent in parts. */
#ifndef AGENT_STREAM_PART_H
#define AGENT_STREAM_PART_H

#include "../http/call.h"
#include "../wait/turn.h"

/* To be called after each attempt to read a part, with its result rv (and
 * call->err): counts the consecutive failures, from 0, of this part. Waiting
 * for a connection is not counted as a failure. */
void agent_part_count(int *failures, const agent_call_t *call, apr_status_t rv);

/* Whether a part that could not be read has failed too often to be tried
 * again. */
bool agent_part_has_exhausted_retries(const agent_call_t *call, int failures);

/* Handles a part that could not be read, with call->err. has_begun: an earlier
 * part was sent. failures: of agent_part_count(). Returns WAIT or MORE: read
 * the part again; DONE: the response has ended with the error. */
agent_turn_t agent_part_failed(agent_call_t *call, bool has_begun, int failures,
                               agent_wake_reason_t reason);

#endif
