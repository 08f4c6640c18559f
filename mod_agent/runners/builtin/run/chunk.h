/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of a message in stream mode messages-tuple. */
#ifndef AGENT_RUNNER_CHUNK_H
#define AGENT_RUNNER_CHUNK_H

#include "runners/builtin/model/call.h"

/* An AIMessageChunk with what is new; one reference. */
json_object *runner_chunk_make(const runner_answer_t *answer,
                               const runner_delta_t *delta);

/* The last chunk of a message: no text, but how it ended and what it cost. */
json_object *runner_chunk_last(json_object *message);

#endif
