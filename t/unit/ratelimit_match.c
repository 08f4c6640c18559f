/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/match.c */
/* Normalized paths, and patterns. The numbers are those of the module's
 * README. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/rules/match.h"

#define UUID "018f2d6e-7c4b-7abc-9def-0123456789ab"

static void check_slashes(unsigned slashes, const char *path,
                          const char *expected)
{
    char out[512];
    size_t length = rlr_match_normalize(out, path, slashes);

    assert_string_equal(out, expected);
    assert_int_equal(length, strlen(expected));
}

static void check_path(const char *path, const char *expected)
{
    check_slashes(0, path, expected);
}

static void d3_12_the_path_is_decoded_once(void **state)
{
    check_path("/runs/%71uery", "/runs/query");
    check_path("/runs/%7a%7A", "/runs/zz");
    check_path("/runs/%2571uery", "/runs/%71uery");
    check_path("/%252e%252e/runs", "/%2e%2e/runs");
    check_path("/%c3%a9", "/\xc3\xa9");
}

static void d3_12_slashes_are_merged_and_a_trailing_one_removed(void **state)
{
    check_path("/", "/");
    check_path("///", "/");
    check_path("/runs//query", "/runs/query");
    check_path("//runs///query//", "/runs/query");
    check_path("/runs/query/", "/runs/query");
}

static void d3_12_dot_segments_are_resolved(void **state)
{
    check_path("/.", "/");
    check_path("/..", "/");
    check_path("/../../runs", "/runs");
    check_path("/runs/./query", "/runs/query");
    check_path("/runs/x/../query", "/runs/query");
    check_path("/runs/x/..", "/runs");
    check_path("/a/b/c/../../d", "/a/d");
    check_path("/runs/%2e%2E/auth", "/auth");
    check_path("/runs/.x/..y/...", "/runs/.x/..y/...");
    check_path("/a//../b", "/b");
}

static void d3_12_an_encoded_slash_stays_encoded(void **state)
{
    check_path("/runs%2fquery", "/runs%2fquery");
    check_path("/runs%2Fquery", "/runs%2Fquery");
    check_path("/x/..%2fruns", "/x/..%2fruns");
    check_slashes(RLR_SLASH_DECODE, "/x%2f..%2Fruns%2f", "/runs");
    check_slashes(RLR_SLASH_DECODE, "/a%2fb/../runs%2fquery", "/runs/query");
    check_slashes(RLR_SLASH_DECODE, "/runs%252fquery", "/runs%2fquery");
    check_slashes(RLR_SLASH_DECODE, "/%2f%2f", "/");
}

static void d3_12_dot_dot_may_remove_an_empty_segment(void **state)
{
    check_slashes(RLR_SLASH_KEEP, "/", "/");
    check_slashes(RLR_SLASH_KEEP, "//..", "/");
    check_slashes(RLR_SLASH_KEEP, "/runs//../query", "/runs/query");
    check_slashes(RLR_SLASH_KEEP, "/runs//.././query//", "/runs/query");
    check_slashes(RLR_SLASH_KEEP, "/a//../../runs", "/runs");
    check_slashes(RLR_SLASH_KEEP, "/runs//query", "/runs/query");
    check_slashes(RLR_SLASH_KEEP, "/runs%2f/../query", "/query");
    check_slashes(RLR_SLASH_KEEP | RLR_SLASH_DECODE, "/runs/%2f..%2fquery/",
                  "/runs/query");
}

static void an_invalid_escape_is_text(void **state)
{
    check_path("/a%", "/a%");
    check_path("/a%4", "/a%4");
    check_path("/a%zz", "/a%zz");
    check_path("/a%4g", "/a%4g");
    check_path("/a%00b", "/a%00b");
    check_path("/a%%41", "/a%A");
}

static void a_normal_path_is_its_own_normal_form(void **state)
{
    static const char *const normal[] = {"/", "/a", "/a/b.c", "/a%00b", "/%zz"};
    static const char *const other[] = {"/a/",  "//a",   "/a/../b",
                                        "/%61", "/a%2f", "/."};

    for (size_t i = 0; i < sizeof(normal) / sizeof(normal[0]); i++) {
        assert_true(rlr_match_is_normal(normal[i], *state));
    }
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        assert_false(rlr_match_is_normal(other[i], *state));
    }
}

static void text_without_a_leading_slash_is_copied(void **state)
{
    check_path("*", "*");
    check_path("", "");
    check_path("http://a/%41", "http://a/%41");
}

static void check_strip(const char *path, const char *expected)
{
    size_t length = strlen(path);
    const char *rest = rlr_match_strip(path, &length, "/api/v1");

    assert_string_equal(rest, expected);
    assert_int_equal(length, strlen(expected));
}

static void d3_11_one_leading_prefix_is_stripped_at_a_segment(void **state)
{
    size_t length = 5;

    check_strip("/api/v1/runs/query", "/runs/query");
    check_strip("/api/v1", "/");
    check_strip("/api/v1/api/v1/runs", "/api/v1/runs");
    check_strip("/api/v10/runs", "/api/v10/runs");
    check_strip("/runs/api/v1", "/runs/api/v1");
    check_strip("/api", "/api");
    check_strip("*", "*");
    assert_string_equal(rlr_match_strip("/runs", &length, NULL), "/runs");
}

static rlr_match_t parse(const char *text, apr_pool_t *pool)
{
    rlr_match_t match;
    const char *problem = "";

    if (rlr_match_parse(&match, text, &problem, pool) != APR_SUCCESS) {
        fail_msg("%s: %s", text, problem);
    }
    return match;
}

static bool test(const char *pattern, const char *method, const char *path,
                 bool head_as_get, apr_pool_t *pool)
{
    rlr_match_t match = parse(pattern, pool);
    rlr_target_t target = {method, path,         strlen(path),
                           path,   strlen(path), head_as_get};

    bool hits = rlr_match_test(&match, &target);
    char second = rlr_match_second(&match);

    /* A matching path has the second byte of the pattern. */
    assert_true(!hits || second == '\0' || second == path[1]);
    return hits;
}

#define HITS(pattern, path)                                                    \
    assert_true(test(pattern, "GET", path, false, *state))
#define MISSES(pattern, path)                                                  \
    assert_false(test(pattern, "GET", path, false, *state))

static void d3_6_a_plain_path_is_a_prefix_that_ends_at_a_segment(void **state)
{
    HITS("/repos", "/repos");
    HITS("/repos", "/repos/a/b");
    MISSES("/repos", "/repository");
    MISSES("/repos", "/repo");
    MISSES("/repos", "/a/repos");
    MISSES("/auth", "/authorize");
    MISSES("/repos", "/Repos");
}

static void d3_7_an_exact_path_matches_no_other_path(void **state)
{
    HITS("=/runs", "/runs");
    MISSES("=/runs", "/runs/stats");
    MISSES("=/runs", "/runsx");
    HITS("=/", "/");
    MISSES("=/", "/a");
}

static void d3_8_containing_matches_the_start_of_a_segment(void **state)
{
    HITS("*/charts*", "/charts");
    HITS("*/charts*", "/a/charts/1/preview");
    HITS("*/charts*", "/charts-x");
    HITS("*/charts*", "/chart/charts");
    MISSES("*/charts*", "/mycharts");
    MISSES("*/charts*", "/a/chart");
    MISSES("*/charts*", "*");
}

static void d3_9_a_suffix_matches_the_end_of_the_path(void **state)
{
    HITS("*/trigger", "/trigger");
    HITS("*/trigger", "/a/b/trigger");
    MISSES("*/trigger", "/a/trigger/b");
    MISSES("*/trigger", "/a/retrigger");
    HITS("*/v1/metadata/submit", "/v1/metadata/submit");
    HITS("*/v1/metadata/submit", "/x/v1/metadata/submit");
}

static void d3_11_a_pattern_may_contain_the_stripped_prefix(void **state)
{
    static const char *const hits[] = {"/metadata", "*/v1/metadata/submit",
                                       "*/v1/metadata*", "/api",
                                       "=/api/v1/metadata/submit"};
    static const char *const misses[] = {"/v1", "=/api", "=/v1/metadata/submit",
                                         "*/api/v1"};
    static const char full[] = "/api/v1/metadata/submit";
    const char *path = full + strlen("/api/v1");
    rlr_target_t target = {"GET", path,         strlen(path),
                           full,  strlen(full), false};

    for (size_t i = 0; i < sizeof(hits) / sizeof(hits[0]); i++) {
        rlr_match_t match = parse(hits[i], *state);

        assert_true(rlr_match_test(&match, &target));
    }
    for (size_t i = 0; i < sizeof(misses) / sizeof(misses[0]); i++) {
        rlr_match_t match = parse(misses[i], *state);

        assert_false(rlr_match_test(&match, &target));
    }
}

static void d3_10_a_uuid_is_a_segment_of_8_4_4_4_12(void **state)
{
    HITS("=/runs/{uuid}", "/runs/" UUID);
    HITS("/{uuid}", "/" UUID);
    HITS("=/runs/{uuid}", "/runs/018F2D6E-7C4B-7ABC-9DEF-0123456789AB");
    MISSES("=/runs/{uuid}", "/runs/" UUID "/share");
    MISSES("=/runs/{uuid}", "/runs/" UUID "0");
    MISSES("=/runs/{uuid}", "/runs/018f2d6e7c4b7abc9def0123456789ab");
    MISSES("=/runs/{uuid}", "/runs/018f2d6e-7c4b-7abc-9def-0123456789ag");
    MISSES("=/runs/{uuid}", "/runs/018f2d6e-7c4b-7abc-9def_0123456789ab");
    MISSES("=/runs/{uuid}", "/runs/{uuid}");
    HITS("/runs/{uuid}", "/runs/" UUID "/share");
    MISSES("/runs/{uuid}", "/runs/" UUID "share");
    HITS("*/{uuid}/share", "/x/" UUID "/share");
    HITS("*/{uuid}*", "/x/y/" UUID);
    MISSES("*/{uuid}*", "/x/y/" UUID "z");
    HITS("=/a/{uuid}/b/{uuid}", "/a/" UUID "/b/" UUID);
    MISSES("=/a/{uuid}/b/{uuid}", "/a/" UUID "/c/" UUID);
}

static void a_star_matches_every_path(void **state)
{
    HITS("*", "/");
    HITS("*", "/a/b");
    HITS("*", "*");
    HITS("*", "");
}

static void d3_13_methods_are_compared_literally(void **state)
{
    assert_true(test("POST /runs", "POST", "/runs", false, *state));
    assert_false(test("POST /runs", "post", "/runs", false, *state));
    assert_false(test("POST /runs", "PATCH", "/runs", false, *state));
    assert_true(test("OPTIONS *", "OPTIONS", "*", false, *state));
    assert_true(test("M-SEARCH *", "M-SEARCH", "/", false, *state));
    assert_false(test("GET /runs", "HEAD", "/runs", false, *state));
    assert_true(test("GET /runs", "HEAD", "/runs", true, *state));
    assert_false(test("POST /runs", "HEAD", "/runs", true, *state));
    assert_true(test("HEAD /runs", "HEAD", "/runs", true, *state));
}

static void a_pattern_that_matches_no_path_is_refused(void **state)
{
    static const char *const bad[][2] = {
        {"", "begins with /"},
        {"runs", "begins with /"},
        {"GET", "begins with /"},
        {"GET ", "begins with /"},
        {"**", "begins with /"},
        {"*runs", "begins with /"},
        {"=runs", "begins with /"},
        {"=", "begins with /"},
        {"/a\tb", "begins with /"},
        {"get /runs", "a method in capitals"},
        {"/a b", "a method in capitals"},
        {"1 /a", "a method in capitals"},
        {"/runs*", "only at its ends"},
        {"/a/*/b", "only at its ends"},
        {"=/a*", "only at its ends"},
        {"/runs?x=1", "without ?"},
        {"/runs#x", "without ?"},
        {"/runs/{id}", "{uuid} as a whole segment"},
        {"/runs/{uuid}x", "{uuid} as a whole segment"},
        {"/runs/x{uuid}", "{uuid} as a whole segment"},
        {"/runs/}", "{uuid} as a whole segment"},
        {"/runs/", "without / at its end"},
        {"//runs", "resolving"},
        {"/runs/../x", "resolving"},
        {"/%72uns", "decoding"},
        {"/", "* for every path"},
        {"*/", "* for every path"},
        {"*/*", "* for every path"}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *problem = "accepted";
        rlr_match_t match;

        assert_int_equal(rlr_match_parse(&match, bad[i][0], &problem, *state),
                         APR_EINVAL);
        if (strstr(problem, bad[i][1]) == NULL) {
            fail_msg("'%s': %s", bad[i][0], problem);
        }
        assert_non_null(strstr(problem, "got '"));
        assert_non_null(strstr(problem, bad[i][0]));
    }
}

static bool covers(const char *first, const char *later, apr_pool_t *pool)
{
    rlr_match_t a = parse(first, pool);
    rlr_match_t b = parse(later, pool);

    return rlr_match_covers(&a, &b, false, pool);
}

#define COVERS(first, later)      assert_true(covers(first, later, *state))
#define LEAVES_SOME(first, later) assert_false(covers(first, later, *state))

static void a_covered_pattern_is_detected(void **state)
{
    COVERS("*", "/runs");
    COVERS("*", "POST */charts*");
    COVERS("*", "*");
    COVERS("/runs", "/runs");
    COVERS("/runs", "/runs/stats");
    COVERS("/runs", "POST =/runs/query");
    COVERS("POST /runs", "POST /runs/query");
    COVERS("=/runs/{uuid}", "=/runs/{uuid}");
    COVERS("/runs", "=/runs/{uuid}");
    COVERS("/runs/{uuid}", "=/runs/" UUID);
    COVERS("*/trigger", "*/x/trigger");
    COVERS("*/trigger", "=/a/trigger");
    COVERS("*/runs*", "/runs");
    COVERS("*/runs*", "*/runs/x");
    COVERS("*/runs*", "*/a/runs-x*");
}

static void a_partly_covered_pattern_is_not_covered(void **state)
{
    LEAVES_SOME("/runs", "*");
    LEAVES_SOME("*/runs*", "*");
    LEAVES_SOME("=/runs", "/runs");
    LEAVES_SOME("/runs/stats", "/runs");
    LEAVES_SOME("/runs", "/runs-x");
    LEAVES_SOME("/runs", "*/runs");
    LEAVES_SOME("*/trigger", "/trigger");
    LEAVES_SOME("*/x/trigger", "*/trigger");
    LEAVES_SOME("/trigger", "*/trigger");
    LEAVES_SOME("*/runs", "*/runs*");
    LEAVES_SOME("POST /runs", "/runs");
    LEAVES_SOME("POST /runs", "PATCH /runs");
    LEAVES_SOME("=/runs/{uuid}", "/runs/{uuid}");
    LEAVES_SOME("=/runs/" UUID, "=/runs/{uuid}");
}

static void get_covers_head_if_head_counts_as_get(void **state)
{
    rlr_match_t get = parse("GET /runs", *state);
    rlr_match_t head = parse("HEAD /runs", *state);

    assert_true(rlr_match_covers(&get, &head, true, *state));
    assert_false(rlr_match_covers(&get, &head, false, *state));
    assert_false(rlr_match_covers(&head, &get, true, *state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(d3_12_the_path_is_decoded_once),
        CHECK_TEST(d3_12_slashes_are_merged_and_a_trailing_one_removed),
        CHECK_TEST(d3_12_dot_segments_are_resolved),
        CHECK_TEST(d3_12_an_encoded_slash_stays_encoded),
        CHECK_TEST(d3_12_dot_dot_may_remove_an_empty_segment),
        CHECK_TEST(an_invalid_escape_is_text),
        CHECK_TEST(a_normal_path_is_its_own_normal_form),
        CHECK_TEST(text_without_a_leading_slash_is_copied),
        CHECK_TEST(d3_11_one_leading_prefix_is_stripped_at_a_segment),
        CHECK_TEST(d3_6_a_plain_path_is_a_prefix_that_ends_at_a_segment),
        CHECK_TEST(d3_7_an_exact_path_matches_no_other_path),
        CHECK_TEST(d3_8_containing_matches_the_start_of_a_segment),
        CHECK_TEST(d3_9_a_suffix_matches_the_end_of_the_path),
        CHECK_TEST(d3_11_a_pattern_may_contain_the_stripped_prefix),
        CHECK_TEST(d3_10_a_uuid_is_a_segment_of_8_4_4_4_12),
        CHECK_TEST(a_star_matches_every_path),
        CHECK_TEST(d3_13_methods_are_compared_literally),
        CHECK_TEST(a_pattern_that_matches_no_path_is_refused),
        CHECK_TEST(a_covered_pattern_is_detected),
        CHECK_TEST(a_partly_covered_pattern_is_not_covered),
        CHECK_TEST(get_covers_head_if_head_counts_as_get)};

    return CHECK_RUN(tests);
}
