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

#include "core/error.h"
#include "core/raw.h"

/* The most levels of a value from a model or a tool. Lines nest it some levels
 * deeper, and have at most AGENT_SCAN_DEPTH levels. */
#define RUNNER_VALUE_DEPTH 64
/* The most memory that the tree of such a value may take; 240 KB of {} take as
 * much. The limit is also for the arguments of all calls of a message together,
 * which stay text (raw.h): the next run of the thread builds their trees. */
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

/* A new empty array. */
json_object *runner_value_list(void);
/* A new array of one string. */
json_object *runner_value_list_text(const char *text);
/* A new array of one value; takes the reference of value. */
json_object *runner_value_list_of(json_object *value);

/* A shallow copy of an object; an empty object for any other value. */
json_object *runner_value_copy(json_object *object);

/* A new reference to value; null stays null. */
json_object *runner_value_share(json_object *value);

/* A new string; NULL is null. */
json_object *runner_value_text(const char *text);

/* The number of elements of an array; 0 for any other value. */
size_t runner_value_count(json_object *list);

/* The string at index i of an array, borrowed; "" when there is none. */
const char *runner_value_item_text(json_object *list, size_t i);

/* The nesting depth of arrays and objects; 0 for other values. */
int runner_value_depth(json_object *value);

/* The bytes of memory that json-c's tree of a JSON text takes; of its valid
 * beginning when it is not JSON. */
size_t runner_value_weigh(const char *text, size_t length);

/*
 * Builds the tree of a value in a text that has passed the scan (core/scan.h)
 * and continues after it, or ends with NUL. *out: one reference for the caller,
 * NULL after an error; scratch memory is freed. *err: in pool. Errors: those of
 * agent_json_parse_scanned().
 */
apr_status_t runner_value_build(json_object **out, agent_raw_t text,
                                agent_error_t **err, apr_pool_t *pool);

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
