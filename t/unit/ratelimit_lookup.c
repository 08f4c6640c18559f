/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/lookup.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/rule.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/key.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/duration.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/match.c */
/* The patterns that a path is tested on: all that match it, in order, and few
 * others. */
#include "ratelimit_line.h"

#include <time.h>

#include <apr_strings.h>

#include "../../mod_ratelimit_regional/rules/lookup.h"

#define PREFIX "/api/v1"
#define NONE   (-1)

/* Patterns of every kind, some with the same beginning. */
static const char *const lines[] = {
    "high 'OPTIONS *' /info */metadata/submit key=ip us=1/1",
    "root =/ key=ip us=1/1",
    "runs 'POST =/runs' /runs/stats key=ip us=1/1",
    "repos /repos key=ip us=1/1",
    "prefix /api/v1/whole =/api/v1 key=ip us=1/1",
    "end 'DELETE /sessions' */trigger key=ip us=1/1",
    "charts 'POST */charts*' key=ip us=1/1",
    "uuid /{uuid} key=ip us=1/1",
    "star '*/v1/star' key=ip us=1/1",
    "default 'GET *' key=ip us=1/1"};
#define RULES ((int)(sizeof(lines) / sizeof(lines[0])))

static const char *const methods[] = {"GET", "POST", "DELETE", "OPTIONS"};
#define METHODS (sizeof(methods) / sizeof(methods[0]))

static const char *const paths[] = {
    "/",
    "",
    "*",
    "/runs",
    "/runs/stats/a",
    "/r",
    "/repos/a",
    "/info",
    "/i",
    "/sessions/a",
    "/s",
    "/s/trigger",
    "/x/trigger",
    "/x/charts/y",
    "/api/v1",
    "/api/v1/whole/a",
    "/api/v1/runs",
    "/api/v1/runs/stats",
    "/api/v1/star",
    "/api/v1/repos",
    "/api/v1/a",
    "/api/x",
    "/v1/star",
    "/x/metadata/submit",
    "/api/v1/metadata/submit",
    "/api/v1/api/v1/whole",
    "/9c5b94b1-35ad-49bb-b118-8e8fc24abf80",
    "/api/v1/9c5b94b1-35ad-49bb-b118-8e8fc24abf80/a",
    "/\xc3\xa4",
    "/~"};
#define PATHS (sizeof(paths) / sizeof(paths[0]))

static const rlr_rule_t **parse_all(apr_pool_t *pool)
{
    const rlr_rule_t **rules = apr_palloc(pool, RULES * sizeof(*rules));

    for (int i = 0; i < RULES; i++) {
        rules[i] = line_parse(lines[i], pool);
    }
    return rules;
}

static rlr_target_t make_target(const char *method, const char *path,
                                const char *prefix)
{
    size_t length = strlen(path);
    rlr_target_t target = {method, path, length, path, length, false};

    target.path = rlr_match_strip(path, &target.length, prefix);
    return target;
}

static bool hits(const rlr_rule_t *rule, const rlr_target_t *target)
{
    for (int i = 0; i < rule->matches->nelts; i++) {
        if (rlr_match_test(&APR_ARRAY_IDX(rule->matches, i, rlr_match_t),
                           target)) {
            return true;
        }
    }
    return false;
}

/* The first of all rules that matches the target. */
static int search(const rlr_rule_t *const *rules, const rlr_target_t *target)
{
    for (int i = 0; i < RULES; i++) {
        if (hits(rules[i], target)) {
            return i;
        }
    }
    return NONE;
}

static int look_up(const rlr_lookup_t *lookup, const rlr_target_t *target)
{
    const rlr_candidate_t *candidate = rlr_lookup_find(lookup, target);

    while (candidate->match != NULL
           && !rlr_match_test(candidate->match, target)) {
        candidate++;
    }
    return candidate->match != NULL ? candidate->rule : NONE;
}

static void check_paths(const char *prefix, apr_pool_t *pool)
{
    const rlr_rule_t **rules = parse_all(pool);
    const rlr_lookup_t *lookup = rlr_lookup_make(rules, RULES, prefix, pool);
    bool seen[RULES] = {false};

    for (size_t i = 0; i < METHODS * PATHS; i++) {
        rlr_target_t target = make_target(methods[i / PATHS], paths[i % PATHS],
                                          prefix);
        int found = search(rules, &target);

        assert_int_equal(look_up(lookup, &target), found);
        if (found != NONE) {
            seen[found] = true;
        }
    }
    for (int i = 0; i < RULES; i++) {
        assert_true(seen[i]);
    }
}

static void the_first_matching_rule_is_found(void **state)
{
    check_paths(NULL, *state);
}

static void d3_11_the_first_matching_rule_of_a_stripped_path_is_found(
    void **state)
{
    check_paths(PREFIX, *state);
}

static int count(const rlr_lookup_t *lookup, const char *path)
{
    rlr_target_t target = make_target("GET", path, PREFIX);
    const rlr_candidate_t *candidate = rlr_lookup_find(lookup, &target);
    int candidates = 0;

    for (; candidate->match != NULL; candidate++) {
        candidates++;
    }
    return candidates;
}

/* Eight patterns match paths with any second byte, or none. */
static void most_patterns_are_not_tested(void **state)
{
    const rlr_lookup_t *lookup = rlr_lookup_make(parse_all(*state), RULES,
                                                 PREFIX, *state);
    int rest = count(lookup, "/x");

    assert_int_equal(rest, 8);
    assert_int_equal(count(lookup, "/"), rest);
    assert_int_equal(count(lookup, ""), rest);
    assert_int_equal(count(lookup, "/info"), rest + 1);
    assert_int_equal(count(lookup, "/runs"), rest + 3);
    assert_int_equal(count(lookup, "/api/v2"), rest + 2);
    assert_int_equal(count(lookup, "/api/v1/x"), rest + 2);
    assert_int_equal(count(lookup, "/api/v1/runs"), rest + 5);
}

/* ---- Long paths ---- */

/* 32 times what LimitRequestLine permits, so that quadratic work would take
 * half a minute at least. */
#define LONG_PATH  262144
#define MANY_RULES 100
/* Processor time; linear work takes 0.1 s, under valgrind some seconds. */
#define MOST_SEC 15

static const char *repeat(const char *part, apr_pool_t *pool)
{
    size_t length = strlen(part);
    char *text = apr_palloc(pool, LONG_PATH + 1);

    for (size_t i = 0; i < LONG_PATH; i++) {
        text[i] = part[i % length];
    }
    text[LONG_PATH] = '\0';
    return text;
}

/* Tests every kind of pattern that looks at a whole path; each begins as the
 * path does. */
static int look_up_many(const char *path, apr_pool_t *pool)
{
    static const char *const before[] = {"*/a/a/a/a/", "*/a/", "/a/a/a/a/"};
    static const char *const after[] = {"*", "", ""};
    const rlr_rule_t **rules = apr_palloc(pool, MANY_RULES * sizeof(*rules));
    rlr_target_t target;

    for (int i = 0; i < MANY_RULES; i++) {
        rules[i] = line_parse(apr_psprintf(pool, "r%d %sx%d%s key=ip us=1/1", i,
                                           before[i % 3], i, after[i % 3]),
                              pool);
    }
    target = make_target("GET", path, PREFIX);
    return look_up(rlr_lookup_make(rules, MANY_RULES, PREFIX, pool), &target);
}

static void the_work_for_a_long_path_is_linear(void **state)
{
    static const char *const parts[] = {"/a",   "/a/..",       "//",
                                        "/%2f", "/a%2f%2e%2e", "/a/./"};
    clock_t began = clock();

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        char *path = apr_palloc(*state, LONG_PATH + 1);

        rlr_match_normalize(path, repeat(parts[i], *state), RLR_SLASH_DECODE);
        assert_int_equal(look_up_many(path, *state), NONE);
    }
    assert_true(clock() - began < MOST_SEC * CLOCKS_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_first_matching_rule_is_found),
        CHECK_TEST(d3_11_the_first_matching_rule_of_a_stripped_path_is_found),
        CHECK_TEST(most_patterns_are_not_tested),
        CHECK_TEST(the_work_for_a_long_path_is_linear)};

    return CHECK_RUN(tests);
}
