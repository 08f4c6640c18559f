/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strict look at JSON text before json-c and PostgreSQL see it (RFC 8259).
 *
 * json-c accepts raw control characters, NaN and single quotes, cuts keys at
 * U+0000 and saturates numbers; jsonb raises on U+0000 and lone surrogates and
 * expands 1e131071 to 128 KB. Whatever passes here means the same to both.
 */
#ifndef AGENT_CORE_SCAN_H
#define AGENT_CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_tables.h>

/* Arrays and objects inside one another. */
#define AGENT_SCAN_DEPTH 128
/* More digits or a larger exponent than any number a client means. */
#define AGENT_SCAN_DIGITS   40
#define AGENT_SCAN_EXPONENT 308
/* jsonb writes every number out: 1e300 comes back as 301 digits. */
#define AGENT_SCAN_PLAIN_DIGITS (AGENT_SCAN_DIGITS + AGENT_SCAN_EXPONENT)
/* What a client sends stands deeper in the lines and records made of it. */
#define AGENT_SCAN_REQUEST_DEPTH (AGENT_SCAN_DEPTH - 8)

typedef enum agent_scan_code_t {
    AGENT_SCAN_OK,
    /* Not JSON: 400. */
    AGENT_SCAN_SYNTAX,
    AGENT_SCAN_UTF8,
    /* JSON that cannot be kept: 422. */
    AGENT_SCAN_NUL,
    AGENT_SCAN_SURROGATE,
    AGENT_SCAN_NUMBER,
    AGENT_SCAN_TOO_DEEP
} agent_scan_code_t;

typedef struct agent_scan_level_t {
    bool is_object;
    /* Members or elements begun so far. */
    size_t count;
    /* The key being read: borrowed from the text, without its quotes. */
    const char *key;
    size_t key_length;
    /* Where this object's count goes in key_counts. */
    int slot;
} agent_scan_level_t;

typedef struct agent_scan_t {
    agent_scan_code_t code;
    /* Byte where the scan stopped; the text's length when all was read. */
    size_t offset;
    unsigned depth;
    agent_scan_level_t levels[AGENT_SCAN_DEPTH];
    /*
     * When set by the caller (elements of size_t): receives the number of keys
     * of each object, in the order in which the objects open.
     */
    apr_array_header_t *key_counts;
    /*
     * Set by the caller for a client's text, which has narrower limits, so that
     * what the database makes of it still passes as a line of the runners'
     * protocol: AGENT_SCAN_REQUEST_DEPTH, AGENT_SCAN_DIGITS for every number.
     */
    bool is_request;
} agent_scan_t;

/*
 * Reads length bytes of text as one JSON value with nothing but white space
 * around it. scan must be zeroed, but for what the caller sets. True when all
 * is well; else scan->code says why and agent_scan_pointer() where.
 */
bool agent_scan_json(agent_scan_t *scan, const char *text, size_t length);

/* The JSON pointer (RFC 6901) of the value the scan stopped in, in pool. */
const char *agent_scan_pointer(const agent_scan_t *scan, apr_pool_t *pool);

/* What is wrong, as half a sentence; never NULL. */
const char *agent_scan_reason(agent_scan_code_t code);

#endif
