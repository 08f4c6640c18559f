/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/match.c */
/* Normalized paths: any input becomes a resolved path, and patterns never read
 * beyond its end. */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "../../mod_ratelimit_regional/rules/match.h"

static const char *const patterns[] = {
    "*",        "/runs",     "=/runs/{uuid}",  "*/trigger",
    "*/{uuid}", "*/charts*", "*/runs/{uuid}*", "GET /a/{uuid}/b"};
#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

/* No empty and no dot segment, and a slash at the end of the root only. */
static void check_segments(const char *path)
{
    const char *segment = path + 1;

    while (path[1] != '\0') {
        size_t length = strcspn(segment, "/");

        must(length > 0 && !(length == 1 && segment[0] == '.')
             && !(length == 2 && segment[0] == '.' && segment[1] == '.'));
        if (segment[length] == '\0') {
            return;
        }
        segment += length + 1;
    }
}

static void test_patterns(const char *path, size_t length, const char *full,
                          apr_pool_t *pool)
{
    rlr_target_t target = {"GET", path, length, full, strlen(full), false};
    const char *problem;
    rlr_match_t match;
    char second;

    for (size_t i = 0; i < PATTERNS; i++) {
        must(rlr_match_parse(&match, patterns[i], &problem, pool)
             == APR_SUCCESS);
        second = rlr_match_second(&match);
        must(!rlr_match_test(&match, &target) || second == '\0'
             || second == path[1] || second == full[1]);
    }
}

/* A leading dot segment must not change the result: it disables the shortcut
 * for paths in normal form. */
static void check_longer(const char *path, const char *expected,
                         unsigned slashes, apr_pool_t *pool)
{
    const char *longer = apr_pstrcat(pool, "/.", path, NULL);
    char *out = apr_palloc(pool, strlen(longer) + 1);
    size_t length = rlr_match_normalize(out, longer, slashes);

    must(length == strlen(expected) && strcmp(out, expected) == 0);
}

static void check_path(const char *path, unsigned slashes, apr_pool_t *pool)
{
    size_t given = strlen(path);
    /* Not from the pool: the sanitizer sees the end of this one. */
    char *out = malloc(given + 1);
    size_t length = rlr_match_normalize(out, path, slashes);
    const char *rest;

    must(length == strlen(out) && length <= given);
    if (path[0] == '/') {
        must(out[0] == '/');
        check_segments(out);
        check_longer(path, out, slashes, pool);
    }
    else {
        must(strcmp(out, path) == 0);
    }
    test_patterns(out, length, out, pool);
    rest = rlr_match_strip(out, &length, "/api/v1");
    must(length == strlen(rest));
    test_patterns(rest, length, out, pool);
    free(out);
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    for (unsigned slashes = 0; slashes <= (RLR_SLASH_DECODE | RLR_SLASH_KEEP);
         slashes++) {
        check_path(text, slashes, pool);
    }
}
