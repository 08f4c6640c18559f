/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON values in place: members and elements are found by walking over
 * the text, and only requested strings are copied. The text must have passed
 * the scan (scan.h), or come from PostgreSQL, and be terminated by NUL; values
 * are borrowed from it.
 */
#ifndef AGENT_CORE_RAW_H
#define AGENT_CORE_RAW_H

#include <stdbool.h>

#include <apr_pools.h>

/* A value without surrounding white space; length 0: no value (NONE). */
typedef struct agent_raw_t {
    const char *text;
    apr_size_t length;
} agent_raw_t;

typedef enum agent_raw_kind_t {
    AGENT_RAW_NONE,
    AGENT_RAW_NULL,
    AGENT_RAW_BOOLEAN,
    AGENT_RAW_NUMBER,
    AGENT_RAW_STRING,
    AGENT_RAW_ARRAY,
    AGENT_RAW_OBJECT
} agent_raw_kind_t;

/* A member of an object. The key is not unescaped and has no quotes. */
typedef struct agent_member_t {
    const char *key;
    apr_size_t key_length;
    const char *value;
    apr_size_t value_length;
} agent_member_t;

/* Returns the value of a text, without surrounding white space. */
agent_raw_t agent_raw_read(const char *text);

/* Returns the type of a value, by its first byte. */
agent_raw_kind_t agent_raw_kind(agent_raw_t value);

/* Finds the next key of an object without walking over its value: *at is the
 * object's first byte, or the byte after a value, and becomes member->value,
 * the first byte of the key's value. value_length is not set. False at the end.
 */
bool agent_raw_member_begin(agent_member_t *member, const char **at);

/* Finds the next member of an object. *at is the object's first byte in the
 * first call, and becomes the byte after the value. False at the end. */
bool agent_raw_member_next(agent_member_t *member, const char **at);

/* Finds the next element of an array. *at: as of agent_raw_member_next(). False
 * at the end. */
bool agent_raw_element_next(agent_raw_t *element, const char **at);

/* Returns the first byte of the value of a member, without walking over it; ""
 * when it is absent. object is the first byte of a value, or ""; only an object
 * has members. */
const char *agent_raw_member_find(const char *object, const char *key);

/* Returns the first byte of the next element of an array, without walking over
 * it; "" at the end. at is the array's first byte, or the byte after an
 * element. */
const char *agent_raw_element_find(const char *at);

/* Returns the byte after an object or array. at is the byte after its last
 * member or element, or its first byte when it has none. */
const char *agent_raw_end(const char *at);

/* Whether the unescaped key equals name. */
bool agent_raw_member_is(const agent_member_t *member, const char *name);

/* Returns the value of a member; NONE when it is absent or object is not an
 * object. */
agent_raw_t agent_raw_get(agent_raw_t object, const char *key);

/* Whether the value is a string whose unescaped content equals text. */
bool agent_raw_equals(agent_raw_t value, const char *text);

/* Returns the length of the unescaped content of a string; 0 for any other
 * value. */
apr_size_t agent_raw_string_length(agent_raw_t value);

/* Returns the unescaped content of a string, in pool; NULL for any other
 * value. */
const char *agent_raw_string(agent_raw_t value, apr_pool_t *pool);

/* Returns the unescaped key, in pool. */
const char *agent_raw_member_key(const agent_member_t *member,
                                 apr_pool_t *pool);

#endif
