/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/rule.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/key.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/duration.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/match.c */
/* Rules: the notation, its errors, and rules that can never match. */
#include "ratelimit_line.h"

static void a_rule_is_parsed(void **state)
{
    const rlr_rule_t *rule = line_parse(
        "ip-high 'OPTIONS *' /info */v1/metadata/submit key=ip us=2000/10 "
        "eu=1999/11 'High throughput'",
        *state);
    const rlr_match_t *matches = (const rlr_match_t *)rule->matches->elts;

    assert_string_equal(rule->name, "ip-high");
    assert_string_equal(rule->category, "High throughput");
    assert_int_equal(rule->key, RLR_KEY_IP);
    assert_int_equal(rule->matches->nelts, 3);
    assert_string_equal(matches[0].method, "OPTIONS");
    assert_int_equal(matches[0].kind, RLR_MATCH_ANY);
    assert_null(matches[1].method);
    assert_int_equal(matches[2].kind, RLR_MATCH_SUFFIX);
    assert_string_equal(matches[2].source, "*/v1/metadata/submit");
    assert_int_equal(rlr_rule_limit(rule, "us")->count, 2000);
    assert_int_equal(rlr_rule_limit(rule, "eu")->interval_sec, 11);
    assert_null(rlr_rule_limit(rule, "apac"));
}

static void an_interval_may_have_a_unit(void **state)
{
    const rlr_rule_t *rule = line_parse(
        "a * key=ip us=600/1m eu=10/10s ap=30/1h sa=5/2000ms af=1/1d", *state);

    assert_int_equal(rlr_rule_limit(rule, "us")->interval_sec, 60);
    assert_int_equal(rlr_rule_limit(rule, "eu")->interval_sec, 10);
    assert_int_equal(rlr_rule_limit(rule, "ap")->interval_sec, 3600);
    assert_int_equal(rlr_rule_limit(rule, "sa")->interval_sec, 2);
    assert_int_equal(rlr_rule_limit(rule, "af")->interval_sec, 86400);
}

static void regions_need_no_declaration(void **state)
{
    const rlr_rule_t *rule = line_parse("a * key=ip ap-south_2=7/3600", *state);

    assert_int_equal(rlr_rule_limit(rule, "ap-south_2")->count, 7);
}

static void the_category_is_optional(void **state)
{
    const rlr_rule_t *rule = line_parse("a * key=ip us=7/3600", *state);

    assert_string_equal(rule->category, "");
}

static void an_invalid_rule_gets_an_error_with_what_was_expected(void **state)
{
    static const char *const bad[][3] = {
        {"", "a name of letters", "got ''"},
        {"a/b * key=ip us=1/1", "a name of letters", "got 'a/b'"},
        {"-a * key=ip us=1/1", "a name of letters", "got '-a'"},
        {"a", "\"[METHOD ]PATH\" after the name", "got none"},
        {"a key=ip us=1/1", "\"[METHOD ]PATH\" after the name", "got none"},
        {"a *", "key=api-key, key=user+ip", "got none"},
        {"a * key=apikey us=1/1", "key=api-key", "got 'key=apikey'"},
        {"a * us=1/1 key=ip", "begins with /", "got 'us=1/1'"},
        {"a * key=ip", "REGION=COUNT/INTERVAL after the key", "got none"},
        {"a * key=ip Category", "REGION=COUNT/INTERVAL", "got 'Category'"},
        {"a * key=ip key=ip us=1/1", "REGION=COUNT/INTERVAL", "'key=ip'"},
        {"a * key=ip =1/1", "REGION=COUNT/INTERVAL", "got '=1/1'"},
        {"a * key=ip us=1/1 us=2/1", "each region once", "got 'us=2/1'"},
        {"a * key=ip us=1/1 High throughput", "quotes around it",
         "got 'throughput'"},
        {"a * key=ip us=1/1 eu=15-10", "COUNT/INTERVAL", "'15-10' (region eu)"},
        {"a * key=ip us=", "COUNT/INTERVAL", "got ''"},
        {"a * key=ip us=0/10", "1 to", "got '0/10'"},
        {"a * key=ip us=10/0", "1 to", "got '10/0'"},
        {"a * key=ip us=-1/10", "1 to", "got '-1/10'"},
        {"a * key=ip us=+1/10", "1 to", "got '+1/10'"},
        {"a * key=ip us=1/10x", "1 to", "got '1/10x'"},
        {"a * key=ip us=1/500ms", "1 to", "got '1/500ms'"},
        {"a * key=ip us=1/1500ms", "1 to", "got '1/1500ms'"},
        {"a * key=ip us=1/2d", "1 to", "got '1/2d'"},
        {"a * key=ip us=1/", "1 to", "got '1/'"},
        {"a * key=ip us=1.5/10", "1 to", "got '1.5/10'"},
        {"a * key=ip us=4294967297/10", "1 to", "got '4294967297/10'"},
        {"a * key=ip us=1/99999999", "1 to", "got '1/99999999'"}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *words[LINE_WORDS_MAX];
        const char *problem = "accepted";
        rlr_rule_t *rule;
        int count = line_split(words, bad[i][0], *state);

        assert_int_equal(rlr_rule_parse(&rule, count, words, &problem, *state),
                         APR_EINVAL);
        if (strstr(problem, bad[i][1]) == NULL
            || strstr(problem, bad[i][2]) == NULL) {
            fail_msg("'%s': %s", bad[i][0], problem);
        }
    }
}

static void a_name_has_at_most_64_characters(void **state)
{
    char name[RLR_NAME_MAX + 2];

    memset(name, 'a', sizeof(name));
    name[RLR_NAME_MAX + 1] = '\0';
    assert_false(rlr_rule_is_name(name));
    assert_true(rlr_rule_is_name(name + 1));
}

static void limits_may_be_as_large_as_a_window_can_count(void **state)
{
    const char *problem;
    rlr_limit_t limit;
    const char *most = apr_psprintf(*state, "%u/%u", RLR_LIMIT_COUNT_MAX,
                                    RLR_LIMIT_INTERVAL_SEC_MAX);
    const char *more = apr_psprintf(*state, "%u/%u", RLR_LIMIT_COUNT_MAX + 1,
                                    RLR_LIMIT_INTERVAL_SEC_MAX);

    assert_int_equal(rlr_rule_parse_limit(&limit, most, &problem, *state),
                     APR_SUCCESS);
    assert_int_equal(limit.count, RLR_LIMIT_COUNT_MAX);
    assert_int_equal(limit.interval_sec, RLR_LIMIT_INTERVAL_SEC_MAX);
    assert_int_equal(rlr_rule_parse_limit(&limit, more, &problem, *state),
                     APR_EINVAL);
}

/* The name of the earlier rule that covers pattern index, or "". */
static const char *find_cover(const char *first, const char *later, int index,
                              apr_pool_t *pool)
{
    const rlr_rule_t *earlier[2] = {
        line_parse("other =/nothing key=ip us=1/1", pool),
        line_parse(first, pool)};
    const rlr_rule_t *cover = rlr_rule_find_cover(
        earlier, 2, line_parse(later, pool), index, false, pool);

    return cover != NULL ? cover->name : "";
}

static void d3_2_a_rule_covered_by_an_earlier_one_is_found(void **state)
{
    assert_string_equal(find_cover("default * key=api-key us=1/1",
                                   "stats /runs/stats key=api-key us=1/1", 0,
                                   *state),
                        "default");
    assert_string_equal(find_cover("high 'OPTIONS *' /info key=ip us=1/1",
                                   "later 'POST /x' /info/y key=user+ip us=1/1",
                                   1, *state),
                        "high");
}

static void d3_4_a_rule_with_another_key_does_not_cover(void **state)
{
    assert_string_equal(find_cover("default * key=api-key us=1/1",
                                   "download /public/download key=ip us=1/1", 0,
                                   *state),
                        "");
    assert_string_equal(find_cover("default * key=api-key us=1/1",
                                   "other /x key=user+ip us=1/1", 0, *state),
                        "");
    assert_string_equal(find_cover("high 'OPTIONS *' /info key=ip us=1/1",
                                   "later 'POST /x' /info/y key=user+ip us=1/1",
                                   0, *state),
                        "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_rule_is_parsed),
        CHECK_TEST(an_interval_may_have_a_unit),
        CHECK_TEST(regions_need_no_declaration),
        CHECK_TEST(the_category_is_optional),
        CHECK_TEST(an_invalid_rule_gets_an_error_with_what_was_expected),
        CHECK_TEST(a_name_has_at_most_64_characters),
        CHECK_TEST(limits_may_be_as_large_as_a_window_can_count),
        CHECK_TEST(d3_2_a_rule_covered_by_an_earlier_one_is_found),
        CHECK_TEST(d3_4_a_rule_with_another_key_does_not_cover)};

    return CHECK_RUN(tests);
}
