/* SPDX-License-Identifier: Apache-2.0 */
/* Anthropic's Messages API, version 2023-06-01, streamed. */
#include "anthropic.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "remote.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/history.h"
#include "runners/builtin/message/message.h"

/* The API requires a number; its documentation uses this one. */
#define MAX_TOKENS_DEFAULT 4096

static void add_headers(apr_array_header_t *headers,
                        const runner_model_t *model, apr_pool_t *pool)
{
    APR_ARRAY_PUSH(headers, const char *) = "anthropic-version: 2023-06-01";
    if (model->key != NULL) {
        APR_ARRAY_PUSH(headers, const char *) = apr_pstrcat(
            pool, "x-api-key: ", model->key, NULL);
    }
}

/* Adds a block to the last message if that has the same role: the API requires
 * alternating roles, and the results of all calls in one message. */
static void add_block(json_object *list, const char *role, json_object *block)
{
    size_t count = json_object_array_length(list);
    json_object *last = count > 0 ? json_object_array_get_idx(list, count - 1)
                                  : NULL;

    if (last != NULL
        && strcmp(agent_json_string(last, "role", ""), role) == 0) {
        json_object_array_add(agent_json_get(last, "content"), block);
        return;
    }
    last = runner_value_add_text(json_object_new_object(), "role", role);
    runner_value_add(last, "content", runner_value_list_of(block));
    json_object_array_add(list, last);
}

static json_object *make_block(const char *type)
{
    return runner_value_add_text(json_object_new_object(), "type", type);
}

/* The API refuses a text that is only white space. */
static void add_text(json_object *list, const char *role, const char *text)
{
    if (runner_history_has_text(text)) {
        add_block(list, role, runner_message_new_text_block(text));
    }
}

/* Converts "data:image/png;base64,..." or another URL to a source. */
static json_object *make_image_source(const char *url, apr_pool_t *pool)
{
    const char *comma = strchr(url, ',');
    const char *encoding = ";base64,";
    const char *found = strstr(url, encoding);
    json_object *source;

    if (strncmp(url, "data:", 5) != 0 || found == NULL
        || found + strlen(encoding) != comma + 1) {
        return runner_value_add_text(make_block("url"), "url", url);
    }
    source = make_block("base64");
    runner_value_add_text(
        source, "media_type",
        apr_pstrmemdup(pool, url + 5, (apr_size_t)(found - url - 5)));
    return runner_value_add_text(source, "data", comma + 1);
}

/* Converts a block of a human message: images from OpenAI's form. */
static json_object *convert_block(json_object *block, apr_pool_t *pool)
{
    json_object *image = agent_json_get(block, "image_url");
    const char *url = json_object_is_type(image, json_type_string)
        ? json_object_get_string(image)
        : agent_json_string(image, "url", NULL);

    if (!runner_message_is(block, "image_url") || url == NULL) {
        return runner_value_share(block);
    }
    return runner_value_add(make_block("image"), "source",
                            make_image_source(url, pool));
}

static void add_human(json_object *list, json_object *message, apr_pool_t *pool)
{
    json_object *content = agent_json_get(message, "content");

    if (!json_object_is_type(content, json_type_array)) {
        add_text(list, "user", runner_message_text(message, pool));
        return;
    }
    for (size_t i = 0; i < json_object_array_length(content); i++) {
        json_object *block = json_object_array_get_idx(content, i);

        if (runner_message_is(block, "text")) {
            add_text(list, "user", agent_json_string(block, "text", ""));
        }
        else {
            add_block(list, "user", convert_block(block, pool));
        }
    }
}

static void add_call(void *baton, const char *id, const char *name,
                     json_object *args)
{
    json_object *block = make_block("tool_use");

    runner_value_add_text(block, "id", id);
    runner_value_add_text(block, "name", name);
    runner_value_add(block, "input", runner_value_share(args));
    add_block(baton, "assistant", block);
}

static void add_ai(json_object *list, json_object *message, apr_pool_t *pool)
{
    add_text(list, "assistant", runner_message_text(message, pool));
    runner_history_visit_calls(message, add_call, list, pool);
}

static void add_tool(json_object *list, json_object *message, apr_pool_t *pool)
{
    json_object *block = make_block("tool_result");

    runner_value_add_text(
        block, "tool_use_id",
        runner_history_make_name(agent_json_string(message, "tool_call_id", ""),
                                 pool));
    runner_value_add_text(block, "content", runner_message_text(message, pool));
    if (strcmp(agent_json_string(message, "status", ""), "error") == 0) {
        runner_value_add_bool(block, "is_error", true);
    }
    add_block(list, "user", block);
}

static void add_system(agent_buffer_t *system, const char *text)
{
    if (agent_buffer_length(system) > 0) {
        agent_buffer_append(system, "\n\n", 2);
    }
    agent_buffer_append(system, text, strlen(text));
}

/* Builds the messages; the texts of system messages are appended to system. */
static json_object *make_messages(runner_call_t *call, agent_buffer_t *system,
                                  apr_pool_t *pool)
{
    json_object *history = runner_history_add_results(call->messages, pool);
    json_object *list = runner_value_list();

    for (size_t i = 0; i < json_object_array_length(history); i++) {
        json_object *message = json_object_array_get_idx(history, i);

        if (runner_message_is(message, "human")) {
            add_human(list, message, pool);
        }
        else if (runner_message_is(message, "ai")) {
            add_ai(list, message, pool);
        }
        else if (runner_message_is(message, "tool")) {
            add_tool(list, message, pool);
        }
        else if (runner_message_is(message, "system")) {
            add_system(system, runner_message_text(message, pool));
        }
    }
    return list;
}

static json_object *make_tools(const runner_graph_t *graph)
{
    json_object *list = runner_value_list();

    for (int i = 0; i < graph->tools->nelts; i++) {
        runner_tool_t *tool = APR_ARRAY_IDX(graph->tools, i, runner_tool_t *);
        json_object *item = json_object_new_object();

        runner_value_add_text(item, "name", tool->name);
        runner_value_add_text(item, "description", tool->description);
        runner_value_add(item, "input_schema",
                         runner_value_share(tool->schema));
        json_object_array_add(list, item);
    }
    return list;
}

static json_object *make_request(runner_call_t *call, apr_pool_t *pool)
{
    const runner_model_t *model = call->model;
    json_object *request = agent_json_own(json_object_new_object(), pool);
    json_object *messages;
    agent_buffer_t system;

    agent_buffer_init(&system, pool);
    if (call->graph->system_prompt != NULL) {
        add_system(&system, call->graph->system_prompt);
    }
    messages = make_messages(call, &system, pool);
    runner_value_add_text(request, "model", model->name);
    runner_value_add_integer(request, "max_tokens",
                             model->max_tokens > 0 ? model->max_tokens
                                                   : MAX_TOKENS_DEFAULT);
    runner_value_add_bool(request, "stream", true);
    if (runner_history_has_text(agent_buffer_text(&system))) {
        runner_value_add_text(request, "system", agent_buffer_text(&system));
    }
    runner_value_add(request, "messages", messages);
    if (call->graph->tools->nelts > 0) {
        runner_value_add(request, "tools", make_tools(call->graph));
    }
    return request;
}

/* Counts are cumulative; a missing one leaves the previous count. input_tokens
 * does not include cached input. */
static void read_usage(runner_answer_t *answer, json_object *usage)
{
    int64_t input = agent_json_integer(usage, "input_tokens", -1);
    int64_t output = agent_json_integer(usage, "output_tokens", -1);

    if (input > 0) {
        answer->input_tokens = input
            + agent_json_integer(usage, "cache_creation_input_tokens", 0)
            + agent_json_integer(usage, "cache_read_input_tokens", 0);
    }
    if (output >= 0) {
        answer->output_tokens = output;
    }
}

static void read_message_start(runner_call_t *call, json_object *data)
{
    json_object *message = agent_json_get(data, "message");
    runner_answer_t *answer = &call->answer;

    runner_answer_set_word(answer, &answer->response_id,
                           agent_json_string(message, "id", NULL));
    runner_answer_set_word(
        answer, &answer->model_name,
        agent_json_string(message, "model", call->model->name));
    read_usage(answer, agent_json_get(message, "usage"));
}

static void read_block_start(runner_call_t *call, json_object *data)
{
    json_object *block = agent_json_get(data, "content_block");
    json_object *input = agent_json_get(block, "input");
    runner_block_t *begun;

    if (runner_message_is(block, "text")) {
        const char *text = agent_json_string(block, "text", "");

        runner_call_add_text(call, text, strlen(text));
        return;
    }
    if (!runner_message_is(block, "tool_use")) {
        return;
    }
    begun = runner_call_begin_tool(call,
                                   (int)agent_json_integer(data, "index", -1),
                                   agent_json_string(block, "id", NULL),
                                   agent_json_string(block, "name", NULL));
    /* Usually {}: the arguments follow in deltas. */
    if (begun != NULL && json_object_is_type(input, json_type_object)
        && json_object_object_length(input) > 0) {
        const char *text = agent_json_print(input, call->pool);

        runner_call_add_args(call, begun, text, strlen(text));
    }
}

static void read_block_delta(runner_call_t *call, json_object *data)
{
    json_object *delta = agent_json_get(data, "delta");
    int index = (int)agent_json_integer(data, "index", -1);
    runner_block_t *block = runner_answer_find_call(&call->answer, index);
    const char *text;

    if (runner_message_is(delta, "text_delta")) {
        text = agent_json_string(delta, "text", "");
        runner_call_add_text(call, text, strlen(text));
    }
    else if (runner_message_is(delta, "input_json_delta") && block != NULL) {
        text = agent_json_string(delta, "partial_json", "");
        runner_call_add_args(call, block, text, strlen(text));
    }
}

static void read_message_delta(runner_call_t *call, json_object *data)
{
    json_object *delta = agent_json_get(data, "delta");
    runner_answer_t *answer = &call->answer;

    runner_answer_set_word(answer, &answer->stop_reason,
                           agent_json_string(delta, "stop_reason", NULL));
    runner_answer_set_word(answer, &answer->stop_sequence,
                           agent_json_string(delta, "stop_sequence", NULL));
    read_usage(answer, agent_json_get(data, "usage"));
}

typedef struct error_row_t {
    const char *type;
    int status;
} error_row_t;

/* The API's error types, with the HTTP status of each outside a stream. */
static const error_row_t error_rows[] = {
    {"invalid_request_error", 400}, {"authentication_error", 401},
    {"permission_error", 403},      {"not_found_error", 404},
    {"request_too_large", 413},     {"rate_limit_error", 429},
    {"overloaded_error", 529},
};

static void read_error(runner_call_t *call, json_object *data)
{
    json_object *error = agent_json_get(data, "error");
    const char *type = agent_json_string(error, "type", "");
    int status = 500;

    for (size_t i = 0; i < sizeof(error_rows) / sizeof(error_rows[0]); i++) {
        if (strcmp(error_rows[i].type, type) == 0) {
            status = error_rows[i].status;
        }
    }
    runner_remote_set_error(call, status,
                            agent_json_string(error, "message", type));
}

/* The data repeats the event's name as its type. Unknown events (ping, and
 * those of later versions) are ignored, as the API requires. */
static void read_event(runner_call_t *call, json_object *data)
{
    const char *type = agent_json_string(data, "type", "");

    if (strcmp(type, "message_start") == 0) {
        read_message_start(call, data);
    }
    else if (strcmp(type, "content_block_start") == 0) {
        read_block_start(call, data);
    }
    else if (strcmp(type, "content_block_delta") == 0) {
        read_block_delta(call, data);
    }
    else if (strcmp(type, "message_delta") == 0) {
        read_message_delta(call, data);
    }
    else if (strcmp(type, "message_stop") == 0) {
        runner_remote_set_complete(call);
    }
    else if (strcmp(type, "error") == 0) {
        read_error(call, data);
    }
}

static const runner_format_t format = {"https://api.anthropic.com",
                                       "/v1/messages", add_headers,
                                       make_request, read_event};

static void start_anthropic(runner_call_t *call)
{
    call->answer.has_block_content = true;
    runner_remote_start(call, &format);
}

const runner_provider_t runner_anthropic_provider = {
    "anthropic", true, start_anthropic, runner_remote_wake};
