/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAI's Chat Completions, streamed; also for compatible servers. */
#include "openai.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "remote.h"
#include "runners/builtin/base/value.h"
#include "runners/builtin/message/history.h"
#include "runners/builtin/message/message.h"

#define OWN_URL "https://api.openai.com/v1"

static void add_headers(apr_array_header_t *headers,
                        const runner_model_t *model, apr_pool_t *pool)
{
    if (model->key != NULL) {
        APR_ARRAY_PUSH(headers, const char *) = apr_pstrcat(
            pool, "Authorization: Bearer ", model->key, NULL);
    }
}

static json_object *make_message(json_object *list, const char *role,
                                 json_object *content)
{
    json_object *message = runner_value_add_text(json_object_new_object(),
                                                 "role", role);

    runner_value_add(message, "content", content);
    json_object_array_add(list, message);
    return message;
}

/* Converts a block of a human message: images from Anthropic's form. */
static json_object *convert_block(json_object *block, apr_pool_t *pool)
{
    json_object *source = agent_json_get(block, "source");
    const char *data = agent_json_string(source, "data", NULL);
    const char *url = agent_json_string(source, "url", NULL);
    json_object *image;

    if (!runner_message_is(block, "image") || (data == NULL && url == NULL)) {
        return runner_value_share(block);
    }
    if (data != NULL) {
        url = apr_pstrcat(
            pool, "data:", agent_json_string(source, "media_type", "image/png"),
            ";base64,", data, NULL);
    }
    image = runner_value_add_text(json_object_new_object(), "type",
                                  "image_url");
    return runner_value_add(
        image, "image_url",
        runner_value_wrap("url", json_object_new_string(url)));
}

static void add_human(json_object *list, json_object *message, apr_pool_t *pool)
{
    json_object *content = agent_json_get(message, "content");
    json_object *blocks;

    if (!json_object_is_type(content, json_type_array)) {
        make_message(list, "user", runner_value_share(content));
        return;
    }
    blocks = runner_value_list();
    for (size_t i = 0; i < json_object_array_length(content); i++) {
        json_object_array_add(
            blocks, convert_block(json_object_array_get_idx(content, i), pool));
    }
    make_message(list, "user", blocks);
}

static void add_call(void *baton, const char *id, const char *name,
                     json_object *args)
{
    json_object *function = runner_value_add_text(json_object_new_object(),
                                                  "name", name);
    json_object *call = json_object_new_object();

    runner_value_add_text(
        function, "arguments",
        json_object_to_json_string_ext(
            args, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    runner_value_add_text(call, "id", id);
    runner_value_add_text(call, "type", "function");
    runner_value_add(call, "function", function);
    json_object_array_add(baton, call);
}

/* The API refuses an empty list of calls, and null content without calls. */
static void add_ai(json_object *list, json_object *message, apr_pool_t *pool)
{
    const char *text = runner_message_text(message, pool);
    json_object *calls = agent_json_own(runner_value_list(), pool);
    bool has_calls;
    json_object *made;

    runner_history_visit_calls(message, add_call, calls, pool);
    has_calls = json_object_array_length(calls) > 0;
    made = make_message(
        list, "assistant",
        has_calls && *text == '\0' ? NULL : json_object_new_string(text));
    if (has_calls) {
        runner_value_add(made, "tool_calls", runner_value_share(calls));
    }
}

static void add_tool(json_object *list, json_object *message, apr_pool_t *pool)
{
    const char *id = agent_json_string(message, "tool_call_id", "");
    json_object *made = make_message(
        list, "tool",
        json_object_new_string(runner_message_text(message, pool)));

    runner_value_add_text(made, "tool_call_id",
                          runner_history_make_name(id, pool));
}

static json_object *make_messages(runner_call_t *call, apr_pool_t *pool)
{
    json_object *history = runner_history_add_results(call->messages, pool);
    json_object *list = runner_value_list();

    if (call->graph->system_prompt != NULL) {
        make_message(list, "system",
                     json_object_new_string(call->graph->system_prompt));
    }
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
            make_message(
                list, "system",
                json_object_new_string(runner_message_text(message, pool)));
        }
    }
    return list;
}

static json_object *make_tools(const runner_graph_t *graph)
{
    json_object *list = runner_value_list();

    for (int i = 0; i < graph->tools->nelts; i++) {
        runner_tool_t *tool = APR_ARRAY_IDX(graph->tools, i, runner_tool_t *);
        json_object *function = json_object_new_object();
        json_object *item = runner_value_add_text(json_object_new_object(),
                                                  "type", "function");

        runner_value_add_text(function, "name", tool->name);
        runner_value_add_text(function, "description", tool->description);
        runner_value_add(function, "parameters",
                         runner_value_share(tool->schema));
        runner_value_add(item, "function", function);
        json_object_array_add(list, item);
    }
    return list;
}

/* OpenAI's own service refuses the old name of the limit for some models;
 * compatible servers may not know the new one. */
static const char *name_limit(const runner_model_t *model)
{
    bool is_own = model->url == NULL || strcmp(model->url, OWN_URL) == 0;

    return is_own ? "max_completion_tokens" : "max_tokens";
}

static json_object *make_request(runner_call_t *call, apr_pool_t *pool)
{
    const runner_model_t *model = call->model;
    json_object *request = agent_json_own(json_object_new_object(), pool);

    runner_value_add_text(request, "model", model->name);
    runner_value_add_bool(request, "stream", true);
    runner_value_add(
        request, "stream_options",
        runner_value_add_bool(json_object_new_object(), "include_usage", true));
    if (model->max_tokens > 0) {
        runner_value_add_integer(request, name_limit(model), model->max_tokens);
    }
    runner_value_add(request, "messages", make_messages(call, pool));
    if (call->graph->tools->nelts > 0) {
        runner_value_add(request, "tools", make_tools(call->graph));
    }
    return request;
}

typedef struct reason_row_t {
    const char *finish;
    const char *stop;
} reason_row_t;

/* Each finish_reason and the equivalent stop_reason. */
static const reason_row_t reason_rows[] = {
    {"stop", "end_turn"},          {"length", "max_tokens"},
    {"tool_calls", "tool_use"},    {"function_call", "tool_use"},
    {"content_filter", "refusal"},
};

static void read_finish(runner_call_t *call, const char *reason)
{
    runner_answer_t *answer = &call->answer;

    runner_answer_set_word(answer, &answer->finish_reason, reason);
    answer->stop_reason = answer->finish_reason;
    for (size_t i = 0; i < sizeof(reason_rows) / sizeof(reason_rows[0]); i++) {
        if (strcmp(reason_rows[i].finish, reason) == 0) {
            answer->stop_reason = reason_rows[i].stop;
        }
    }
    /* Not every server sends "[DONE]". */
    runner_remote_set_complete(call);
}

static runner_block_t *get_last_call(runner_call_t *call)
{
    apr_array_header_t *blocks = call->answer.blocks;
    runner_block_t *block = blocks->nelts > 0
        ? APR_ARRAY_IDX(blocks, blocks->nelts - 1, runner_block_t *)
        : NULL;

    return block != NULL && block->is_call ? block : NULL;
}

/* The call of a delta: the one of its index; without an index the last call,
 * unless the delta has another id. NULL when it begins a new call. */
static runner_block_t *find_call(runner_call_t *call, int index, const char *id)
{
    runner_block_t *last = get_last_call(call);

    if (index >= 0) {
        return runner_answer_find_call(&call->answer, index);
    }
    return last != NULL && (id == NULL || strcmp(last->call_id, id) == 0)
        ? last
        : NULL;
}

static void read_call_delta(runner_call_t *call, json_object *delta)
{
    json_object *function = agent_json_get(delta, "function");
    json_object *args = agent_json_get(function, "arguments");
    const char *id = agent_json_string(delta, "id", NULL);
    int index = (int)agent_json_integer(delta, "index", -1);
    runner_block_t *block = find_call(call, index, id);
    const char *text = NULL;

    if (block == NULL) {
        block = runner_call_begin_tool(
            call, index, id, agent_json_string(function, "name", NULL));
    }
    if (json_object_is_type(args, json_type_string)) {
        text = json_object_get_string(args);
    }
    else if (json_object_is_type(args, json_type_object)) {
        text = agent_json_print(args, call->pool);
    }
    if (block != NULL && text != NULL) {
        runner_call_add_args(call, block, text, strlen(text));
    }
}

static void read_delta(runner_call_t *call, json_object *delta)
{
    json_object *calls = agent_json_get(delta, "tool_calls");
    const char *text = agent_json_string(
        delta, "content", agent_json_string(delta, "refusal", ""));

    runner_call_add_text(call, text, strlen(text));
    for (size_t i = 0; i < runner_value_count(calls); i++) {
        read_call_delta(call, json_object_array_get_idx(calls, i));
    }
}

static void read_choices(runner_call_t *call, json_object *choices)
{
    json_object *choice;
    const char *reason;

    /* Empty in the chunk with the usage; some servers send null. */
    if (runner_value_count(choices) == 0) {
        return;
    }
    choice = json_object_array_get_idx(choices, 0);
    read_delta(call, agent_json_get(choice, "delta"));
    reason = agent_json_string(choice, "finish_reason", NULL);
    if (reason != NULL) {
        read_finish(call, reason);
    }
}

static void read_usage(runner_answer_t *answer, json_object *usage)
{
    if (json_object_is_type(usage, json_type_object)) {
        answer->input_tokens = agent_json_integer(usage, "prompt_tokens", 0);
        answer->output_tokens = agent_json_integer(usage, "completion_tokens",
                                                   0);
    }
}

/* Servers send an HTTP status as code, or a type of error. */
static void read_error(runner_call_t *call, json_object *error)
{
    const char *type = agent_json_string(error, "type", "");
    int64_t code = agent_json_integer(error, "code", 0);
    int status = 500;

    if (code >= 400 && code <= 599) {
        status = (int)code;
    }
    else if (strstr(type, "rate_limit") != NULL) {
        status = 429;
    }
    else if (strcmp(type, "invalid_request_error") == 0) {
        status = 400;
    }
    runner_remote_set_error(call, status,
                            json_object_is_type(error, json_type_string)
                                ? json_object_get_string(error)
                                : agent_json_string(error, "message", type));
}

/* Keeps a member; one that a later event leaves out keeps its value. */
static void keep_word(runner_answer_t *answer, const char **kept,
                      json_object *data, const char *key)
{
    const char *text = agent_json_string(data, key, NULL);

    if (text != NULL) {
        runner_answer_set_word(answer, kept, text);
    }
}

static void read_event(runner_call_t *call, json_object *data)
{
    json_object *error = agent_json_get(data, "error");
    runner_answer_t *answer = &call->answer;

    if (error != NULL) {
        read_error(call, error);
        return;
    }
    keep_word(answer, &answer->response_id, data, "id");
    keep_word(answer, &answer->model_name, data, "model");
    keep_word(answer, &answer->fingerprint, data, "system_fingerprint");
    read_usage(answer, agent_json_get(data, "usage"));
    read_choices(call, agent_json_get(data, "choices"));
}

static const runner_format_t format = {OWN_URL, "/chat/completions",
                                       add_headers, make_request, read_event};

static void start_openai(runner_call_t *call)
{
    runner_remote_start(call, &format);
}

const runner_provider_t runner_openai_provider = {"openai", true, start_openai,
                                                  runner_remote_wake};
