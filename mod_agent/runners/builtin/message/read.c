/* SPDX-License-Identifier: Apache-2.0 */
/* Converting the messages of clients. */
#include "read.h"

#include <string.h>

#include <apr_strings.h>

#include "core/json.h"
#include "core/uuid.h"
#include "message.h"
#include "runners/builtin/base/raw.h"
#include "runners/builtin/base/value.h"

typedef struct word_t {
    const char *given;
    const char *type;
} word_t;

/* The roles, types and class names that clients send, with the type of each. */
static const word_t words[] = {
    {"human", "human"},
    {"user", "human"},
    {"ai", "ai"},
    {"assistant", "ai"},
    {"system", "system"},
    {"developer", "system"},
    {"tool", "tool"},
    {"remove", "remove"},
    {"HumanMessage", "human"},
    {"HumanMessageChunk", "human"},
    {"AIMessage", "ai"},
    {"AIMessageChunk", "ai"},
    {"SystemMessage", "system"},
    {"SystemMessageChunk", "system"},
    {"ToolMessage", "tool"},
    {"ToolMessageChunk", "tool"},
    {"RemoveMessage", "remove"},
};

/* The members that are read; others are moved to additional_kwargs. */
static const char *const known_members[] = {"type",
                                            "role",
                                            "content",
                                            "id",
                                            "name",
                                            "additional_kwargs",
                                            "example",
                                            "response_metadata",
                                            "tool_calls",
                                            "invalid_tool_calls",
                                            "tool_call_id",
                                            "usage_metadata",
                                            "artifact",
                                            "status",
                                            "tool_call_chunks"};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *find_type(const char *given)
{
    for (size_t i = 0; given != NULL && i < COUNT(words); i++) {
        if (strcmp(words[i].given, given) == 0) {
            return words[i].type;
        }
    }
    return NULL;
}

static bool is_known_member(const char *key)
{
    for (size_t i = 0; i < COUNT(known_members); i++) {
        if (strcmp(known_members[i], key) == 0) {
            return true;
        }
    }
    return false;
}

/* A new reference to a member that is an object; else an empty object. */
static json_object *share_object(json_object *given, const char *key)
{
    json_object *value = agent_json_get(given, key);

    return json_object_is_type(value, json_type_object)
        ? runner_value_share(value)
        : json_object_new_object();
}

static apr_status_t read_blocks(json_object **out, json_object *given,
                                const char *where, runner_problem_t **problem,
                                apr_pool_t *pool)
{
    json_object *blocks = agent_json_own(runner_value_list(), pool);

    for (size_t i = 0; i < json_object_array_length(given); i++) {
        json_object *block = json_object_array_get_idx(given, i);

        if (json_object_is_type(block, json_type_string)) {
            json_object_array_add(
                blocks,
                runner_message_new_text_block(json_object_get_string(block)));
        }
        else if (agent_json_string(block, "type", NULL) != NULL) {
            json_object_array_add(blocks, runner_value_share(block));
        }
        else {
            return runner_problem_set(problem, pool, RUNNER_INVALID_INPUT,
                                      "%s/content/%" APR_SIZE_T_FMT
                                      ": a content block is an object "
                                      "with a type, or a string.",
                                      where, i);
        }
    }
    *out = runner_value_share(blocks);
    return APR_SUCCESS;
}

static apr_status_t read_content(json_object **out, json_object *given,
                                 const char *where, runner_problem_t **problem,
                                 apr_pool_t *pool)
{
    json_object *content = agent_json_get(given, "content");

    if (content == NULL) {
        *out = json_object_new_string("");
        return APR_SUCCESS;
    }
    if (json_object_is_type(content, json_type_string)) {
        *out = runner_value_share(content);
        return APR_SUCCESS;
    }
    if (json_object_is_type(content, json_type_array)) {
        return read_blocks(out, content, where, problem, pool);
    }
    return runner_problem_set(problem, pool, RUNNER_INVALID_INPUT,
                              "%s/content: expected a string or an array of "
                              "content blocks.",
                              where);
}

/* Reads a call in OpenAI's form, whose arguments are JSON in a string. */
static void read_function_call(json_object *message, json_object *function,
                               const char *id, apr_pool_t *pool)
{
    const char *name = agent_json_string(function, "name", "");
    const char *text = agent_json_string(function, "arguments", "{}");
    size_t left = RUNNER_VALUE_WEIGHT_MAX;
    json_object *args = runner_raw_arguments(text, strlen(text), &left, pool);

    if (args != NULL) {
        json_object_array_add(
            agent_json_get(message, "tool_calls"),
            runner_message_new_call(name, runner_value_share(args), id));
        return;
    }
    json_object_array_add(
        agent_json_get(message, "invalid_tool_calls"),
        runner_message_new_invalid_call(
            name, text, id, "The arguments are not a JSON object."));
}

static apr_status_t read_call(json_object *message, json_object *call,
                              const char *where, runner_problem_t **problem,
                              apr_pool_t *pool)
{
    json_object *function = agent_json_get(call, "function");
    json_object *args = agent_json_get(call, "args");
    const char *name = agent_json_string(call, "name", NULL);
    const char *id = agent_json_string(call, "id", NULL);
    char made[AGENT_UUID_SIZE];

    if (id == NULL) {
        agent_uuid_v7(made);
        id = made;
    }
    if (json_object_is_type(function, json_type_object)) {
        read_function_call(message, function, id, pool);
        return APR_SUCCESS;
    }
    if (name == NULL
        || (args != NULL && !json_object_is_type(args, json_type_object))) {
        return runner_problem_set(problem, pool, RUNNER_INVALID_INPUT,
                                  "%s/tool_calls: a tool call has a name and "
                                  "args, which is an object.",
                                  where);
    }
    args = args ? runner_value_share(args) : json_object_new_object();
    json_object_array_add(agent_json_get(message, "tool_calls"),
                          runner_message_new_call(name, args, id));
    return APR_SUCCESS;
}

static apr_status_t read_ai_fields(json_object *message, json_object *given,
                                   const char *where,
                                   runner_problem_t **problem, apr_pool_t *pool)
{
    json_object *calls = agent_json_get(given, "tool_calls");
    json_object *invalid = agent_json_get(given, "invalid_tool_calls");
    json_object *usage = agent_json_get(given, "usage_metadata");

    runner_value_add(message, "tool_calls", runner_value_list());
    runner_value_add(message, "invalid_tool_calls",
                     json_object_is_type(invalid, json_type_array)
                         ? runner_value_share(invalid)
                         : runner_value_list());
    for (size_t i = 0; i < runner_value_count(calls); i++) {
        apr_status_t rv = read_call(
            message, json_object_array_get_idx(calls, i), where, problem, pool);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    runner_value_add(message, "usage_metadata",
                     json_object_is_type(usage, json_type_object)
                         ? runner_value_share(usage)
                         : runner_message_new_usage(0, 0));
    return APR_SUCCESS;
}

static apr_status_t read_tool_fields(json_object *message, json_object *given,
                                     const char *where,
                                     runner_problem_t **problem,
                                     apr_pool_t *pool)
{
    const char *call_id = agent_json_string(given, "tool_call_id", NULL);
    const char *status = agent_json_string(given, "status", "success");

    if (call_id == NULL) {
        return runner_problem_set(problem, pool, RUNNER_INVALID_INPUT,
                                  "%s/tool_call_id: a tool message names the "
                                  "call that it answers.",
                                  where);
    }
    runner_value_add_text(message, "tool_call_id", call_id);
    runner_value_add(message, "artifact", share_object(given, "artifact"));
    runner_value_add_text(message, "status",
                          strcmp(status, "error") == 0 ? "error" : "success");
    return APR_SUCCESS;
}

/* The additional_kwargs of the message, and its unknown members. */
static json_object *read_extras(json_object *given)
{
    json_object *extras = json_object_new_object();
    json_object *kwargs = agent_json_get(given, "additional_kwargs");

    if (json_object_is_type(kwargs, json_type_object)) {
        json_object_object_foreach(kwargs, key, value)
        {
            runner_value_add(extras, key, runner_value_share(value));
        }
    }
    json_object_object_foreach(given, key, value)
    {
        if (!is_known_member(key)) {
            runner_value_add(extras, key, runner_value_share(value));
        }
    }
    return extras;
}

static apr_status_t read_fields(json_object **out, const char *type,
                                json_object *given, const char *where,
                                runner_problem_t **problem, apr_pool_t *pool)
{
    json_object *message;
    json_object *content = NULL;
    apr_status_t rv;

    rv = read_content(&content, given, where, problem, pool);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    message = runner_message_new(type, content,
                                 agent_json_string(given, "id", NULL));
    *out = agent_json_own(message, pool);
    runner_value_add_text(message, "name",
                          agent_json_string(given, "name", NULL));
    runner_value_add(message, "additional_kwargs", read_extras(given));
    runner_value_add(message, "response_metadata",
                     share_object(given, "response_metadata"));
    runner_value_add_bool(
        message, "example",
        json_object_get_boolean(agent_json_get(given, "example")));
    if (strcmp(type, "ai") == 0) {
        return read_ai_fields(message, given, where, problem, pool);
    }
    if (strcmp(type, "tool") == 0) {
        return read_tool_fields(message, given, where, problem, pool);
    }
    return APR_SUCCESS;
}

static apr_status_t read_remove(json_object **out, json_object *given,
                                const char *where, runner_problem_t **problem,
                                apr_pool_t *pool)
{
    const char *id = agent_json_string(given, "id", NULL);

    if (id == NULL) {
        return runner_problem_set(problem, pool, RUNNER_INVALID_INPUT,
                                  "%s/id: say which message to remove.", where);
    }
    *out = runner_value_add_text(
        runner_value_add_text(json_object_new_object(), "type", "remove"), "id",
        id);
    agent_json_own(*out, pool);
    return APR_SUCCESS;
}

/*
 * Returns the word that stands for the type: the class name of a serialised
 * LangChain message {"lc":1, "type":"constructor", "id":[.., class name],
 * "kwargs":{..}}, with *given set to kwargs; the type or the role of any other
 * object.
 */
static const char *find_word(json_object **given)
{
    json_object *path = agent_json_get(*given, "id");
    json_object *fields = agent_json_get(*given, "kwargs");

    if (agent_json_get(*given, "lc") != NULL && runner_value_count(path) > 0
        && json_object_is_type(fields, json_type_object)) {
        *given = fields;
        return json_object_get_string(json_object_array_get_idx(
            path, json_object_array_length(path) - 1));
    }
    return agent_json_string(*given, "type",
                             agent_json_string(*given, "role", NULL));
}

apr_status_t runner_read_message(json_object **out, json_object *given,
                                 const char *where, runner_problem_t **problem,
                                 apr_pool_t *pool)
{
    const char *word;
    const char *type;
    apr_status_t rv;

    if (json_object_is_type(given, json_type_string)) {
        *out = runner_message_new("human", runner_value_share(given), NULL);
        return APR_SUCCESS;
    }
    if (!json_object_is_type(given, json_type_object)) {
        return runner_problem_set(problem, pool, RUNNER_INVALID_INPUT,
                                  "%s: a message is an object with a role and "
                                  "content, or a string.",
                                  where);
    }
    word = find_word(&given);
    type = find_type(word);
    if (type == NULL) {
        return runner_problem_set(
            problem, pool, RUNNER_INVALID_INPUT,
            "%s/role: expected user, human, ai, assistant, system, developer "
            "or tool, not %s%s%s.",
            where, word ? "\"" : "", word ? word : "nothing", word ? "\"" : "");
    }
    rv = strcmp(type, "remove") == 0
        ? read_remove(out, given, where, problem, pool)
        : read_fields(out, type, given, where, problem, pool);
    if (rv == APR_SUCCESS) {
        runner_value_share(*out);
    }
    return rv;
}
