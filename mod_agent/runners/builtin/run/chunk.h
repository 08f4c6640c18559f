/* SPDX-License-Identifier: Apache-2.0 */
/* Message chunks, as stream modes messages-tuple and events send them. */
#ifndef AGENT_RUNNER_CHUNK_H
#define AGENT_RUNNER_CHUNK_H

#include "runners/builtin/model/call.h"

/* An AIMessageChunk of one delta; one reference. */
json_object *runner_chunk_make(const runner_answer_t *answer,
                               const runner_delta_t *delta);

/* The last chunk of a message: no text, but stop_reason and usage; one
 * reference. */
json_object *runner_chunk_last(json_object *message);

#endif
