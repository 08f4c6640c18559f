/* SPDX-License-Identifier: Apache-2.0 */
/* Building message chunks; a client concatenates those of one id. */
#include "chunk.h"

#include "core/json.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/message.h"

static json_object *make_chunk(const char *id, json_object *content)
{
    json_object *chunk = runner_message_new("AIMessageChunk", content, id);

    runner_value_add(chunk, "tool_calls", runner_value_list());
    runner_value_add(chunk, "invalid_tool_calls", runner_value_list());
    runner_value_add(chunk, "usage_metadata", NULL);
    return runner_value_add(chunk, "tool_call_chunks", runner_value_list());
}

/* The position among the calls of the answer; the model's own index may count
 * text blocks as well. */
static int find_position(const runner_answer_t *answer,
                         const runner_block_t *call)
{
    int position = 0;

    for (int i = 0; i < answer->blocks->nelts; i++) {
        const runner_block_t *block = APR_ARRAY_IDX(answer->blocks, i,
                                                    runner_block_t *);

        if (block == call) {
            break;
        }
        position += block->is_call ? 1 : 0;
    }
    return position;
}

static json_object *make_call_chunk(const runner_answer_t *answer,
                                    const runner_delta_t *delta)
{
    json_object *chunk = json_object_new_object();

    runner_value_add_text(chunk, "name",
                          delta->is_first ? delta->call->name : NULL);
    runner_value_add(
        chunk, "args",
        json_object_new_string_len(delta->text, (int)delta->length));
    runner_value_add_text(chunk, "id",
                          delta->is_first ? delta->call->call_id : NULL);
    runner_value_add_integer(chunk, "index",
                             find_position(answer, delta->call));
    return runner_value_add_text(chunk, "type", "tool_call_chunk");
}

json_object *runner_chunk_make(const runner_answer_t *answer,
                               const runner_delta_t *delta)
{
    json_object *chunk;

    if (delta->call == NULL) {
        return make_chunk(
            answer->message_id,
            json_object_new_string_len(delta->text, (int)delta->length));
    }
    chunk = make_chunk(answer->message_id, json_object_new_string(""));
    return runner_value_add(
        chunk, "tool_call_chunks",
        runner_value_list_of(make_call_chunk(answer, delta)));
}

json_object *runner_chunk_last(json_object *message)
{
    json_object *chunk = make_chunk(agent_json_string(message, "id", ""),
                                    json_object_new_string(""));

    runner_value_add(
        chunk, "response_metadata",
        runner_value_share(agent_json_get(message, "response_metadata")));
    return runner_value_add(
        chunk, "usage_metadata",
        runner_value_share(agent_json_get(message, "usage_metadata")));
}
