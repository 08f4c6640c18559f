/* SPDX-License-Identifier: Apache-2.0 */
/* Building messages and reading their fields. */
#include "message.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "core/uuid.h"
#include "runners/builtin/base/value.h"
#include "lazy.h"

json_object *runner_message_new_text_block(const char *text)
{
    return runner_value_add_text(
        runner_value_add_text(json_object_new_object(), "type", "text"), "text",
        text);
}

json_object *runner_message_new_usage(int64_t input_tokens,
                                      int64_t output_tokens)
{
    json_object *usage = json_object_new_object();

    runner_value_add_integer(usage, "input_tokens", input_tokens);
    runner_value_add_integer(usage, "output_tokens", output_tokens);
    runner_value_add_integer(usage, "total_tokens",
                             input_tokens + output_tokens);
    return usage;
}

json_object *runner_message_new_call(const char *name, json_object *args,
                                     const char *id)
{
    json_object *call = json_object_new_object();

    runner_value_add_text(call, "name", name);
    runner_value_add(call, "args", args);
    runner_value_add_text(call, "id", id);
    runner_value_add_text(call, "type", "tool_call");
    return call;
}

json_object *runner_message_new_invalid_call(const char *name, const char *args,
                                             const char *id, const char *error)
{
    json_object *call = json_object_new_object();

    runner_value_add_text(call, "name", name);
    runner_value_add_text(call, "args", args);
    runner_value_add_text(call, "id", id);
    runner_value_add_text(call, "error", error);
    runner_value_add_text(call, "type", "invalid_tool_call");
    return call;
}

json_object *runner_message_new(const char *type, json_object *content,
                                const char *id)
{
    json_object *message = json_object_new_object();
    char made[AGENT_UUID_SIZE];

    if (id == NULL) {
        agent_uuid_v7(made);
        id = made;
    }
    runner_value_add_text(message, "type", type);
    runner_value_add(message, "content", content);
    runner_value_add_text(message, "id", id);
    runner_value_add_text(message, "name", NULL);
    runner_value_add(message, "additional_kwargs", json_object_new_object());
    runner_value_add(message, "response_metadata", json_object_new_object());
    runner_value_add_bool(message, "example", false);
    return message;
}

json_object *runner_message_new_tool(const char *call_id, const char *name,
                                     const char *content, json_object *artifact,
                                     bool is_error)
{
    json_object *message = runner_message_new(
        "tool", json_object_new_string(content), NULL);

    runner_value_add_text(message, "name", name);
    runner_value_add_text(message, "tool_call_id", call_id);
    runner_value_add(message, "artifact",
                     artifact ? artifact : json_object_new_object());
    runner_value_add_text(message, "status", is_error ? "error" : "success");
    return message;
}

bool runner_message_is(json_object *message, const char *type)
{
    return runner_lazy_equals(message, "type", type);
}

/* The text of a content block; "" when it is another kind of block. */
static const char *get_block_text(json_object *content, size_t i)
{
    json_object *block = json_object_array_get_idx(content, i);

    return runner_message_is(block, "text")
        ? agent_json_string(block, "text", "")
        : "";
}

/* Measured first: the number of blocks is not bounded. */
static const char *join_blocks(json_object *content, apr_pool_t *pool)
{
    size_t count = json_object_array_length(content);
    size_t size = 1;
    char *joined;
    char *end;

    for (size_t i = 0; i < count; i++) {
        size += strlen(get_block_text(content, i));
    }
    joined = apr_palloc(pool, size);
    end = joined;
    for (size_t i = 0; i < count; i++) {
        end = stpcpy(end, get_block_text(content, i));
    }
    *end = '\0';
    return joined;
}

const char *runner_message_text(json_object *message, apr_pool_t *pool)
{
    const char *text = runner_lazy_string(message, "content", NULL, pool);
    json_object *content;

    if (text != NULL) {
        return text;
    }
    content = agent_json_get(runner_lazy_open(message, pool), "content");
    return json_object_is_type(content, json_type_array)
        ? join_blocks(content, pool)
        : "";
}
