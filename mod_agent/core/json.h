/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json-c objects owned by a pool, to read selected fields and to build small
 * texts. A client's JSON is stored and sent as its original bytes, never
 * printed by json-c.
 */
#ifndef AGENT_CORE_JSON_H
#define AGENT_CORE_JSON_H

#include <stdbool.h>

#include <json-c/json.h>

#include "error.h"

/*
 * Scans a client's text strictly, within the narrower limits of scan.h:
 * well-formed, no duplicate keys, not too deep or heavy. Builds
 * nothing: core/raw.h reads the text. Errors: INVALID_JSON with the byte,
 * INVALID or NUL_CHARACTER with the pointer.
 */
apr_status_t agent_json_scan_request(const char *text, apr_size_t length,
                                     agent_error_t **err, apr_pool_t *pool);

/*
 * Parses length bytes (text[length] must be NUL) after the strict scan;
 * duplicate keys are refused. The object lives as long as pool. It takes up to
 * 270 times the memory of its text: not for whole bodies of clients. Errors: as
 * above.
 */
apr_status_t agent_json_parse(json_object **out, const char *text,
                              apr_size_t length, agent_error_t **err,
                              apr_pool_t *pool);

/* The two halves of agent_json_parse(): the strict scan, which also measures
 * the tree (AGENT_SCAN_WEIGHT_*), and building it of a text that has passed. */
apr_status_t agent_json_scan(size_t *weight, const char *text,
                             apr_size_t length, agent_error_t **err,
                             apr_pool_t *pool);
apr_status_t agent_json_parse_scanned(json_object **out, const char *text,
                                      apr_size_t length, agent_error_t **err,
                                      apr_pool_t *pool);

/* Registers a cleanup of pool that releases the caller's reference of the
 * object; returns the object. */
json_object *agent_json_own(json_object *object, apr_pool_t *pool);

/* Returns a member; NULL when it is absent or null, which json-c does not
 * distinguish. */
json_object *agent_json_get(json_object *object, const char *key);

/* Returns the text of a member, borrowed from object; fallback when it is
 * absent or not a string. */
const char *agent_json_string(json_object *object, const char *key,
                              const char *fallback);

/* Returns the value of a member; fallback when it is absent or not an integer.
 */
int64_t agent_json_integer(json_object *object, const char *key,
                           int64_t fallback);

/* Prints a value without white space, in pool. */
const char *agent_json_print(json_object *object, apr_pool_t *pool);

/* Prints a text as a JSON string with quotes, in pool; NULL as null. */
const char *agent_json_quote(const char *text, apr_pool_t *pool);

#endif
