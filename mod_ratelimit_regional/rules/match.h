/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requests that a rule matches: the normalized path, and patterns.
 *
 * A pattern is an optional method and a path:
 *
 *   *           every path
 *   /repos      that path and all paths below it, not /repository
 *   =/runs      that path alone
 *   *X          paths that end with X, which begins with a slash
 *   *X*         paths that contain X
 *
 * {uuid} is a segment of 8-4-4-4-12 hex digits.
 *
 * No httpd here, and nothing is shared between processes.
 */
#ifndef RLR_MATCH_H
#define RLR_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_errno.h>
#include <apr_pools.h>

typedef enum rlr_match_kind_t {
    RLR_MATCH_ANY,
    RLR_MATCH_PREFIX,
    RLR_MATCH_EXACT,
    RLR_MATCH_SUFFIX,
    RLR_MATCH_CONTAINS
} rlr_match_kind_t;

/* A pattern, made by rlr_match_parse; read-only afterwards. */
typedef struct rlr_match_t {
    /* As written in the configuration. */
    const char *source;
    /* NULL for every method. */
    const char *method;
    rlr_match_kind_t kind;
    /* Without the stars; empty for RLR_MATCH_ANY. */
    const char *text;
    /* Bytes of a path that the text matches: 36 for {uuid}. */
    size_t length;
    bool has_uuid;
} rlr_match_t;

/* The request that patterns are tested on. */
typedef struct rlr_target_t {
    const char *method;
    /* Normalized and stripped; see rlr_match_normalize, rlr_match_strip. */
    const char *path;
    size_t length;
    /* The path before it was stripped, for patterns that contain the prefix or
     * match it with a star; `path` itself if nothing was stripped. */
    const char *full;
    size_t full_length;
    /* HEAD matches rules for GET. */
    bool head_as_get;
} rlr_target_t;

/* Parses "[METHOD ]PATTERN" into *match, in pool. Returns APR_EINVAL with
 * "expected ..., got ..." in *problem. */
apr_status_t rlr_match_parse(rlr_match_t *match, const char *text,
                             const char **problem, apr_pool_t *pool);

/* Whether the pattern matches the target. */
bool rlr_match_test(const rlr_match_t *match, const rlr_target_t *target);

/* Returns the second byte of all paths that the pattern matches; 0 if they
 * differ. */
char rlr_match_second(const rlr_match_t *match);

/* Whether `first` matches every request that `later` matches. A false
 * negative is possible only if a pattern has a literal UUID where the other
 * has {uuid}. */
bool rlr_match_covers(const rlr_match_t *first, const rlr_match_t *later,
                      bool head_as_get, apr_pool_t *pool);

/* httpd's AllowEncodedSlashes On and MergeSlashes Off. */
#define RLR_SLASH_DECODE 1U
#define RLR_SLASH_KEEP   2U

/*
 * Normalizes a path as httpd does before it routes: %XX decoded once, `//`,
 * `.` and `..` resolved, no trailing `/`. %00 stays encoded, and a slash
 * without RLR_SLASH_DECODE. Invalid escapes are ordinary text. With
 * RLR_SLASH_KEEP `..` removes an empty segment; the remaining empty segments
 * are dropped. A path that does not begin with `/` (the `*` of OPTIONS) is
 * copied. out needs strlen(path) + 1 bytes; returns the length.
 */
size_t rlr_match_normalize(char *out, const char *path, unsigned slashes);

/* Whether the path is its own normal form; no request has any other path. pool
 * is scratch. */
bool rlr_match_is_normal(const char *path, apr_pool_t *pool);

/* Removes the prefix (NULL: none) from the beginning of the path, once and only
 * at the end of a segment. Returns a pointer into the path, or the root, and
 * updates *length. */
const char *rlr_match_strip(const char *path, size_t *length,
                            const char *prefix);

#endif
