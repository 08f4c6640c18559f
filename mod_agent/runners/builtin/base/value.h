/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small steps in building json-c objects. References: a function that returns
 * an object gives the caller one reference; runner_value_add() takes one.
 */
#ifndef AGENT_RUNNER_VALUE_H
#define AGENT_RUNNER_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <apr_pools.h>
#include <json-c/json.h>

/* What others wrote sits a few levels deep inside a line, which has a limit of
 * its own (AGENT_SCAN_DEPTH). */
#define RUNNER_VALUE_DEPTH 64
/* What the tree of one such text may take in memory: 240 KB of {} do. */
#define RUNNER_VALUE_WEIGHT_MAX ((size_t)64 * 1024 * 1024)

/* Adds a member and returns object, so that calls can be nested. */
json_object *runner_value_add(json_object *object, const char *key,
                              json_object *value);

/* The same for a text (NULL is null), an integer, a truth value. */
json_object *runner_value_add_text(json_object *object, const char *key,
                                   const char *text);
json_object *runner_value_add_integer(json_object *object, const char *key,
                                      int64_t number);
json_object *runner_value_add_bool(json_object *object, const char *key,
                                   bool truth);

/* A new object with one member, which takes the caller's reference. */
json_object *runner_value_wrap(const char *key, json_object *value);

/* A new array; of one text; of one value, whose reference it takes. */
json_object *runner_value_list(void);
json_object *runner_value_list_text(const char *text);
json_object *runner_value_list_of(json_object *value);

/* A new object with the members of object, which it shares; an empty one when
 * object is not one. */
json_object *runner_value_copy(json_object *object);

/* A new reference to value; null stays null. */
json_object *runner_value_share(json_object *value);

/* A new text; NULL is null. */
json_object *runner_value_text(const char *text);

/* The text of an element of an array; "" when it is none. */
const char *runner_value_item_text(json_object *list, size_t i);

/* Levels of arrays and objects inside one another; a plain value has none. */
int runner_value_depth(json_object *value);

/* Bytes of json-c's tree of a text; some of them when it is not JSON. */
size_t runner_value_weigh(const char *text, size_t length);

/*
 * Reads JSON text whose keys and values may be anything a model or a tool
 * wrote: cleans it (runner_text_clean_json), then reads strictly. NULL when
 * it is not JSON, or weighs more than RUNNER_VALUE_WEIGHT_MAX. The object
 * belongs to pool.
 */
json_object *runner_value_parse(const char *text, size_t length,
                                apr_pool_t *pool);

/*
 * The same for a value that is going to stand inside a line: NULL also when
 * it is nested deeper than RUNNER_VALUE_DEPTH levels, or weighs more than *left
 * bytes, from which its weight is taken.
 */
json_object *runner_value_parse_bounded(const char *text, size_t length,
                                        size_t *left, apr_pool_t *pool);

/* The same for an event of a stream, in which a character may be cut in two
 * (halves.h). */
json_object *runner_value_parse_event(const char *text, size_t length,
                                      apr_pool_t *pool);

#endif
