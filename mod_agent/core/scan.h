/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict validation of JSON text (RFC 8259), before json-c and PostgreSQL read
 * it.
 *
 * json-c accepts raw control characters, NaN and single quotes, cuts keys at
 * U+0000 and saturates numbers; jsonb raises on U+0000 and lone surrogates and
 * expands 1e131071 to 128 KB. Whatever passes here means the same to both.
 */
#ifndef AGENT_CORE_SCAN_H
#define AGENT_CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "scan_key.h"

/* Nesting of arrays and objects. */
#define AGENT_SCAN_DEPTH 128
/* Limits of numbers, beyond any reasonable value. */
#define AGENT_SCAN_DIGITS   40
#define AGENT_SCAN_EXPONENT 308
/* jsonb writes every number out: 1e300 comes back as 301 digits. */
#define AGENT_SCAN_PLAIN_DIGITS (AGENT_SCAN_DIGITS + AGENT_SCAN_EXPONENT)
/* Clients' values are nested more deeply in the records made from them. */
#define AGENT_SCAN_REQUEST_DEPTH (AGENT_SCAN_DEPTH - 8)

/*
 * Memory in bytes of the tree that json-c builds of a text; measured with
 * json-c 0.16 and glibc's malloc, the growth of its tables included.
 * "[[1,2],..]" and
 * "{}" take 47 and 264 times their text, so the text's length says little.
 */
#define AGENT_SCAN_WEIGHT_OBJECT 800
#define AGENT_SCAN_WEIGHT_ARRAY  160
/* An element of an array, beside its value. */
#define AGENT_SCAN_WEIGHT_ELEMENT 16
/* A member of an object, beside the bytes of its key and its value. */
#define AGENT_SCAN_WEIGHT_MEMBER 128
/* A string, number, true or false, beside the bytes of its text; null weighs
 * nothing. */
#define AGENT_SCAN_WEIGHT_SCALAR 80
/*
 * The limit of a request. 4 MB of coordinates with six decimals weigh 74 MB,
 * of messages with 60 letters 58 MB, of {} 1.1 GB. A text that the server makes
 * of several requests, a state say, may weigh more.
 */
#define AGENT_SCAN_REQUEST_WEIGHT ((size_t)96 * 1024 * 1024)

typedef enum agent_scan_code_t {
    AGENT_SCAN_OK,
    /* Not JSON: 400. */
    AGENT_SCAN_SYNTAX,
    AGENT_SCAN_UTF8,
    /* JSON that cannot be kept: 422. */
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
    /* Keys of the objects around this one. */
    size_t first_key;
} agent_scan_level_t;

typedef struct agent_scan_t {
    agent_scan_code_t code;
    /* Byte where the scan stopped; the text's length when all was read. */
    size_t offset;
    unsigned depth;
    agent_scan_level_t levels[AGENT_SCAN_DEPTH];
    /* Memory of json-c's tree of the text so far; AGENT_SCAN_WEIGHT_*. */
    size_t weight;
    /* Set by the caller: the limit of weight; 0 = none. */
    size_t max_weight;
    /*
     * Set by the caller: equal keys of one object are refused. Memory for them
     * (scan_key.h says how much) is taken from a subpool of it and given back
     * before the scan returns. NULL: they pass, and the last one counts.
     */
    apr_pool_t *pool;
    agent_scan_keys_t keys;
    /*
     * Set by the caller for a client's text, which has narrower limits, so that
     * what the database makes of it still passes as a line of the runners'
     * protocol: AGENT_SCAN_REQUEST_DEPTH, AGENT_SCAN_DIGITS for every number.
     */
    bool is_request;
} agent_scan_t;

/*
 * Reads length bytes of text (less than 2 GB) as one JSON value with nothing
 * but white space around it. scan must be zeroed, but for what the caller sets.
 * True when all is well; else scan->code says why and agent_scan_pointer()
 * where.
 */
bool agent_scan_json(agent_scan_t *scan, const char *text, size_t length);

/* Whether the text is valid UTF-8 (RFC 3629). */
bool agent_scan_is_utf8(const char *text, size_t length);

/* The JSON pointer (RFC 6901) of the invalid value, or of the duplicate key, in
 * pool. */
const char *agent_scan_pointer(const agent_scan_t *scan, apr_pool_t *pool);

/* The error as a part of a sentence; never NULL. */
const char *agent_scan_reason(agent_scan_code_t code);

#endif
