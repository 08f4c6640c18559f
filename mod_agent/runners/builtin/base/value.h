/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building and reading json-c objects. A function that returns an object gives
 * the caller one reference; runner_value_add() takes one.
 */
#ifndef AGENT_RUNNER_VALUE_H
#define AGENT_RUNNER_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <apr_pools.h>
#include <json-c/json.h>

/* The deepest value from a model or a tool: a line repeats it a few levels
 * deep, and is limited itself (AGENT_SCAN_DEPTH). */
#define RUNNER_VALUE_DEPTH 64
/* The most memory that the tree of such a value may take: 240 KB of {} do. Also
 * for values that stay text (raw.h), of all calls of a message: the next run of
 * the thread builds their trees. */
#define RUNNER_VALUE_WEIGHT_MAX ((size_t)64 * 1024 * 1024)

/* Adds a member; returns object, so that calls can be nested. */
json_object *runner_value_add(json_object *object, const char *key,
                              json_object *value);

/* The same for a string (NULL is null), an integer, a boolean. */
json_object *runner_value_add_text(json_object *object, const char *key,
                                   const char *text);
json_object *runner_value_add_integer(json_object *object, const char *key,
                                      int64_t number);
json_object *runner_value_add_bool(json_object *object, const char *key,
                                   bool value);

/* A new object with one member; takes the reference of value. */
json_object *runner_value_wrap(const char *key, json_object *value);

/* A new array: empty; of one string; of one value, whose reference is taken. */
json_object *runner_value_list(void);
json_object *runner_value_list_text(const char *text);
json_object *runner_value_list_of(json_object *value);

/* A shallow copy of an object; an empty object when it is not one. */
json_object *runner_value_copy(json_object *object);

/* A new reference to value; null stays null. */
json_object *runner_value_share(json_object *value);

/* A new string; NULL is null. */
json_object *runner_value_text(const char *text);

/* An element of an array that is a string; "" when it is not. */
const char *runner_value_item_text(json_object *list, size_t i);

/* The nesting depth of arrays and objects; 0 for other values. */
int runner_value_depth(json_object *value);

/* The memory of json-c's tree of a JSON text; of its beginning when it is not
 * valid JSON. */
size_t runner_value_weigh(const char *text, size_t length);

/*
 * Parses JSON text from a model or a tool: cleans it (base/clean.h), then
 * parses it strictly. NULL when it is not JSON, or its tree takes more than
 * RUNNER_VALUE_WEIGHT_MAX. The object belongs to pool.
 */
json_object *runner_value_parse(const char *text, size_t length,
                                apr_pool_t *pool);

/* The same for an event of a stream, which may have unpaired surrogates
 * (surrogates.h). */
json_object *runner_value_parse_event(const char *text, size_t length,
                                      apr_pool_t *pool);

#endif
