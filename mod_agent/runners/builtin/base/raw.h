/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON from models and tools that stays text: arguments, events, results. No
 * tree of it is built, which would take up to 264 times the text (core/scan.h).
 * A raw value is a json-c object without members that prints as its text, so
 * that it can be a part of any other value.
 */
#ifndef AGENT_RUNNER_RAW_H
#define AGENT_RUNNER_RAW_H

#include <stddef.h>

#include <json-c/json.h>

#include "core/raw.h"

/*
 * Cleans (clean.h), validates and compacts JSON text from a model or a tool.
 * Returns the value, in pool and followed by NUL; length 0 when the text is not
 * JSON, repeats a key, or is nested deeper than RUNNER_VALUE_DEPTH levels. Time
 * and memory are linear in the text.
 */
agent_raw_t runner_raw_read(const char *text, size_t length, apr_pool_t *pool);

/* A raw value with a copy of the text that runner_raw_read() returned; NULL
 * when that is empty. The caller gets one reference. */
json_object *runner_raw_value(agent_raw_t value);

/*
 * Reads the arguments of a call: a raw value that belongs to pool; NULL when
 * they are not an object, or the tree that the next run of the thread builds of
 * them takes more than *left bytes. Otherwise subtracts those bytes from *left.
 */
json_object *runner_raw_arguments(const char *text, size_t length, size_t *left,
                                  apr_pool_t *pool);

/* A string without its quotes, any other value as JSON; in pool. */
const char *runner_raw_print(agent_raw_t value, apr_pool_t *pool);

/* The JSON text of an object, raw or not: borrowed from a raw one, else in
 * pool. */
const char *runner_raw_text(json_object *object, apr_pool_t *pool);

/* A member of an object, raw or not, that is a string, in pool; NULL when it is
 * absent or not a string. */
const char *runner_raw_string(json_object *object, const char *key,
                              apr_pool_t *pool);

/* The bytes that the tree of a raw value would take beyond its text; 0 for any
 * other value. */
size_t runner_raw_excess(json_object *value);

#endif
