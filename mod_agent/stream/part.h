/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that are read and sent in parts. */
#ifndef AGENT_STREAM_PART_H
#define AGENT_STREAM_PART_H

#include "../http/call.h"
#include "../wait/turn.h"

/* After a part that could not be read, with call->err. has_begun: a part before
 * it was sent. Returns WAIT or MORE: it is to be read again; DONE: the response
 * has ended with the error. */
agent_turn_t agent_part_failed(agent_call_t *call, bool has_begun,
                               agent_wake_reason_t reason);

#endif
