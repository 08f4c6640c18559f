/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests a rule is for: the path as every rule sees it, and patterns.
 *
 * A pattern is an optional method and a path: a star (every path), /repos
 * (that and what is below it, not /repository), =/runs (that and no other), a
 * star before the path (paths that end so) or one on each side (paths that
 * contain it). {uuid} stands for a segment of the form 8-4-4-4-12.
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
    /* As the administrator wrote it. */
    const char *source;
    /* NULL for every method. */
    const char *method;
    rlr_match_kind_t kind;
    /* Without the stars; empty for RLR_MATCH_ANY. */
    const char *text;
    /* Bytes of a path that the text stands for: {uuid} is 36 of them. */
    size_t length;
    bool has_uuid;
} rlr_match_t;

/* What a rule looks at. */
typedef struct rlr_target_t {
    const char *method;
    /* Normalized and stripped; see rlr_match_normalize, rlr_match_strip. */
    const char *path;
    size_t length;
    /* The same before it was stripped, for patterns that have the prefix in
     * them or a star that stands for it; path itself if nothing was. */
    const char *full;
    size_t full_length;
    /* HEAD counts as GET where a rule names GET. */
    bool head_as_get;
} rlr_target_t;

/*
 * Reads "[METHOD ]PATTERN" into *match, in pool. APR_EINVAL with a sentence
 * "expected ..., got ..." in *problem.
 */
apr_status_t rlr_match_parse(rlr_match_t *match, const char *text,
                             const char **problem, apr_pool_t *pool);

/* Whether a request to that target is one that the pattern is for. */
bool rlr_match_test(const rlr_match_t *match, const rlr_target_t *target);

/* The second byte of all paths that the pattern is for; 0: they differ. */
char rlr_match_second(const rlr_match_t *match);

/*
 * Whether each request that `later` is for is one that `first` is for too.
 * A false negative is possible only for patterns that nobody writes: a literal
 * UUID where another pattern has {uuid}.
 */
bool rlr_match_covers(const rlr_match_t *first, const rlr_match_t *later,
                      bool head_as_get, apr_pool_t *pool);

/* What httpd is told of slashes: AllowEncodedSlashes On, MergeSlashes Off. */
#define RLR_SLASH_DECODE 1U
#define RLR_SLASH_KEEP   2U

/*
 * The path as rules see it, which is the path that httpd will route on: %XX
 * decoded once, `//`, `.` and `..` resolved, no `/` at the end. An encoded
 * slash stays as it is without RLR_SLASH_DECODE; so does %00. Escapes that are
 * none are ordinary text. With RLR_SLASH_KEEP an empty segment is one that `..`
 * takes away; what is left of them is no part of the path. What does not begin
 * with `/` (the `*` of OPTIONS) is copied. out needs strlen(path) + 1 bytes;
 * returns the length.
 */
size_t rlr_match_normalize(char *out, const char *path, unsigned slashes);

/* Whether normalizing leaves the path as it is; what it changes is a path that
 * no request has. pool is for scratch. */
bool rlr_match_is_normal(const char *path, apr_pool_t *pool);

/*
 * The path behind one leading prefix that ends at a segment border; the path
 * itself when it does not begin with it. prefix NULL: none. *length follows.
 */
const char *rlr_match_strip(const char *path, size_t *length,
                            const char *prefix);

#endif
