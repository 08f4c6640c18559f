/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: the elements of the state's channel `messages`. Every message in
 * the state carries every field of its kind, in one order:
 *   all: type content id name additional_kwargs response_metadata example
 *   ai: tool_calls invalid_tool_calls usage_metadata
 *   tool: tool_call_id artifact status
 * Functions that return an object give the caller one reference.
 */
#ifndef AGENT_RUNNER_MESSAGE_H
#define AGENT_RUNNER_MESSAGE_H

#include <stdbool.h>

#include <json-c/json.h>

#include "runners/builtin/base/problem.h"

/*
 * A message as clients may write it (role or type, text or blocks, the
 * serialised form of the LangChain libraries, a plain text) as a message of
 * the state. A missing id is made. Fields of other kinds are kept in
 * additional_kwargs. type `remove` stays {type, id}. where names the place in
 * the input for the problem ("messages/0").
 */
apr_status_t runner_message_read(json_object **out, json_object *given,
                                 const char *where, runner_problem_t **problem,
                                 apr_pool_t *pool);

/* A new message of the type with its common fields; content's reference is
 * taken. id NULL makes one. */
json_object *runner_message_new(const char *type, json_object *content,
                                const char *id);

/* A tool's answer. artifact NULL is {}; else its reference is taken. */
json_object *runner_message_tool(const char *call_id, const char *name,
                                 const char *content, json_object *artifact,
                                 bool is_error);

/* {input_tokens, output_tokens, total_tokens}. */
json_object *runner_message_usage(int64_t input_tokens, int64_t output_tokens);

/* {name, args, id, type "tool_call"}; the reference of args is taken. */
json_object *runner_message_call(const char *name, json_object *args,
                                 const char *id);

/* {name, args (text), id, error, type "invalid_tool_call"}. */
json_object *runner_message_invalid_call(const char *name, const char *args,
                                         const char *id, const char *error);

/* Its type, "" when it has none. */
const char *runner_message_type(json_object *message);
bool runner_message_is(json_object *message, const char *type);

/* The text of its content, text blocks joined, in pool or borrowed. */
const char *runner_message_text(json_object *message, apr_pool_t *pool);

/* What the messages of an update become is longer than they are: with every
 * field a message has at least 190 bytes. Their list may have so many. */
#define RUNNER_MESSAGES_MAX ((size_t)7 * 1024 * 1024)

/*
 * The channel's reducer: a message with the id of one in list replaces it,
 * others are appended; `remove` takes one out (id "__remove_all__": all before
 * it). update is one message or an array of them. list may be NULL.
 */
apr_status_t runner_messages_add(json_object **merged, json_object *list,
                                 json_object *update,
                                 runner_problem_t **problem, apr_pool_t *pool);

#endif
