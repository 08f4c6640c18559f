/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that are read and sent in parts. */
#ifndef AGENT_STREAM_PART_H
#define AGENT_STREAM_PART_H

#include "../http/call.h"
#include "../wait/turn.h"

/* After an attempt to read a part, with call->err unless rv is APR_SUCCESS:
 * counts the failures of this part, which are 0 before the first one. Waiting
 * for a connection is not counted as a failure. */
void agent_part_count(int *failures, const agent_call_t *call, apr_status_t rv);

/* After a part that could not be read: whether it is not to be read again. */
bool agent_part_has_exhausted_retries(const agent_call_t *call, int failures);

/* After a part that could not be read, with call->err. has_begun: a part before
 * it was sent. failures: of agent_part_count(). Returns WAIT or MORE: it is to
 * be read again; DONE: the response has ended with the error. */
agent_turn_t agent_part_failed(agent_call_t *call, bool has_begun, int failures,
                               agent_wake_reason_t reason);

#endif
