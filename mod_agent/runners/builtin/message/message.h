/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: the elements of the state's channel `messages`. A message in the
 * state has all fields of its type, in this order:
 *   all: type content id name additional_kwargs response_metadata example
 *   ai: tool_calls invalid_tool_calls usage_metadata
 *   tool: tool_call_id artifact status
 * A message of the database may be text (lazy.h).
 * Functions that return an object give the caller one reference.
 */
#ifndef AGENT_RUNNER_MESSAGE_H
#define AGENT_RUNNER_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <apr_pools.h>
#include <json-c/json.h>

/* A message with the fields that all types have; takes the reference of
 * content. An id is made when id is NULL. */
json_object *runner_message_new(const char *type, json_object *content,
                                const char *id);

/* A message of type `tool`, the result of a call; takes the reference of
 * artifact, NULL is {}. */
json_object *runner_message_new_tool(const char *call_id, const char *name,
                                     const char *content, json_object *artifact,
                                     bool is_error);

/* A content block {type "text", text}. */
json_object *runner_message_new_text_block(const char *text);

/* {input_tokens, output_tokens, total_tokens}. */
json_object *runner_message_new_usage(int64_t input_tokens,
                                      int64_t output_tokens);

/* {name, args, id, type "tool_call"}; takes the reference of args. */
json_object *runner_message_new_call(const char *name, json_object *args,
                                     const char *id);

/* {name, args (text), id, error, type "invalid_tool_call"}. */
json_object *runner_message_new_invalid_call(const char *name, const char *args,
                                             const char *id, const char *error);

/* Whether a message or content block is of that type. */
bool runner_message_is(json_object *message, const char *type);

/* The text of the content, with text blocks joined; in pool, or borrowed from
 * the message. */
const char *runner_message_text(json_object *message, apr_pool_t *pool);

#endif
