/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict validation of JSON text (RFC 8259), before json-c and PostgreSQL read
 * it.
 *
 * json-c accepts raw control characters, NaN and single quotes, cuts keys at
 * U+0000 and saturates numbers; jsonb raises on U+0000 and lone surrogates and
 * expands 1e131071 to 128 KB. A text that is valid here has the same meaning
 * for both.
 */
#ifndef AGENT_CORE_SCAN_H
#define AGENT_CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "scan_key.h"

/* The deepest nesting of arrays and objects. */
#define AGENT_SCAN_DEPTH 128
/* Limits of numbers, beyond any reasonable value. */
#define AGENT_SCAN_DIGITS   40
#define AGENT_SCAN_EXPONENT 308
/* jsonb prints numbers without an exponent: 1e300 is returned as 301 digits. */
#define AGENT_SCAN_PLAIN_DIGITS (AGENT_SCAN_DIGITS + AGENT_SCAN_EXPONENT)
/* The deepest nesting of a request. It is less, because records contain the
 * values of clients at a deeper level. */
#define AGENT_SCAN_REQUEST_DEPTH (AGENT_SCAN_DEPTH - 8)

/*
 * Memory in bytes of the tree that json-c builds from a text, with the growth
 * of its tables; measured with json-c 0.16 and glibc's malloc. The length of
 * the text does not bound it: [[1,2],...] takes 47 times its length, {} 264
 * times.
 */
#define AGENT_SCAN_WEIGHT_OBJECT 800
#define AGENT_SCAN_WEIGHT_ARRAY  160
/* An element of an array, without its value. */
#define AGENT_SCAN_WEIGHT_ELEMENT 16
/* A member of an object, without the bytes of its key and without its value. */
#define AGENT_SCAN_WEIGHT_MEMBER 128
/* A string, number, true or false, without the bytes of its text; null takes no
 * memory. */
#define AGENT_SCAN_WEIGHT_SCALAR 80
/*
 * The limit of the weight of a request. Of 4 MB of text, coordinates with six
 * decimals take 74 MB, messages of 60 letters 58 MB, and {} 1.1 GB. A text that
 * the server composes from several requests, for example a state, may take
 * more.
 */
#define AGENT_SCAN_REQUEST_WEIGHT ((size_t)96 * 1024 * 1024)

typedef enum agent_scan_code_t {
    AGENT_SCAN_OK,
    /* Not JSON: 400. */
    AGENT_SCAN_SYNTAX,
    AGENT_SCAN_UTF8,
    /* JSON that cannot be stored: 422. */
    AGENT_SCAN_NUL,
    AGENT_SCAN_SURROGATE,
    AGENT_SCAN_NUMBER,
    AGENT_SCAN_TOO_DEEP,
    AGENT_SCAN_TOO_HEAVY,
    AGENT_SCAN_DUPLICATE
} agent_scan_code_t;

typedef struct agent_scan_level_t {
    bool is_object;
    /* Members or elements begun so far. */
    size_t count;
    /* The key being read: borrowed from the text, without its quotes. */
    const char *key;
    size_t key_length;
    /* Number of its first key in agent_scan_t.keys. */
    size_t first_key;
} agent_scan_level_t;

typedef struct agent_scan_t {
    agent_scan_code_t code;
    /* Byte at which the scan stopped; the text's length if it is valid. */
    size_t offset;
    unsigned depth;
    agent_scan_level_t levels[AGENT_SCAN_DEPTH];
    /* Memory of json-c's tree of the text so far; AGENT_SCAN_WEIGHT_*. */
    size_t weight;
    /* Set by the caller: the limit of weight; 0 = none. */
    size_t max_weight;
    /*
     * Set by the caller: if not NULL, equal keys of one object are refused; the
     * keys are stored in a subpool (scan_key.h has the size) that is destroyed
     * before the scan returns. NULL: equal keys are accepted, and the last one
     * applies.
     */
    apr_pool_t *pool;
    agent_scan_keys_t keys;
    /*
     * Set by the caller for a client's text: the limits are
     * AGENT_SCAN_REQUEST_DEPTH and, for every number, AGENT_SCAN_DIGITS, so
     * that records which the database makes of it are within the limits of the
     * runner protocol.
     */
    bool is_request;
} agent_scan_t;

/*
 * Validates length bytes of text (less than 2 GB): one JSON value, optionally
 * surrounded by white space. *scan must be zeroed except for the members that
 * the caller sets. Returns true if the text is valid; otherwise scan->code is
 * the reason and agent_scan_pointer() the location.
 */
bool agent_scan_json(agent_scan_t *scan, const char *text, size_t length);

/* Whether the text is valid UTF-8 (RFC 3629). */
bool agent_scan_is_utf8(const char *text, size_t length);

/* Returns the JSON pointer (RFC 6901) of the invalid value or the duplicate
 * key, in pool. */
const char *agent_scan_pointer(const agent_scan_t *scan, apr_pool_t *pool);

/* Returns the error as the predicate of a sentence, constant: "is not JSON". */
const char *agent_scan_reason(agent_scan_code_t code);

#endif
