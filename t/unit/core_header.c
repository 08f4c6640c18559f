/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/header.c */
/* Patterns of names of headers: their notation, and what they select. */
#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_agent/core/header.h"

/* patterns: with spaces between them. */
static bool is_selected(const char *patterns, const char *name,
                        apr_pool_t *pool)
{
    apr_array_header_t *list = apr_array_make(pool, 4,
                                              sizeof(agent_header_pattern_t));
    char *last;

    for (char *word = apr_strtok(apr_pstrdup(pool, patterns), " ", &last);
         word != NULL; word = apr_strtok(NULL, " ", &last)) {
        if (!agent_header_read_pattern(apr_array_push(list), word)) {
            fail_msg("'%s' is not a pattern", word);
        }
    }
    return agent_header_is_selected(list, name);
}

static void a_pattern_selects_its_headers(void **state)
{
    static const char *const pairs[][2] = {{"x-tenant", "x-tenant"},
                                           {"x-tenant", "X-Tenant"},
                                           {"X-Tenant", "x-tenant"},
                                           {"x-*", "x-a"},
                                           {"x-*", "X-"},
                                           {"*", "user-agent"},
                                           {"a b", "b"},
                                           {"x-* !x-secret", "x-secrets"},
                                           {"x-* !x-secret-*", "x-secret"},
                                           {"authorization", "Authorization"},
                                           {"* cookie", "Cookie"},
                                           {"x-api-key", "x-api-key"}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        if (!is_selected(pairs[i][0], pairs[i][1], *state)) {
            fail_msg("%s does not select %s", pairs[i][0], pairs[i][1]);
        }
    }
}

static void a_pattern_selects_nothing_else(void **state)
{
    static const char *const pairs[][2] = {
        {"", "x-a"},
        {"x-tenant", "x-tenants"},
        {"x-tenant", "x-tenan"},
        {"x-*", "y-x-a"},
        {"!x-a", "x-b"},
        {"x-* !x-secret", "X-Secret"},
        {"!x-secret x-*", "x-secret"},
        {"x-secret !x-*", "x-secret"},
        {"* !*", "x-a"},
        {"*", "Authorization"},
        {"auth*", "authorization"},
        {"*", "proxy-authorization"},
        {"*", "cookie"},
        {"x-*", "X-API-Key"},
        {"authorization !*", "authorization"},
        {"*", "user_id"},
        {"*", "Thread_Id"},
        {"*", "run_id"},
        {"*", "assistant_id"},
        {"*", "graph_id"},
        {"check*", "checkpoint_id"},
        {"check*", "checkpoint_ns"},
        {"check*", "checkpoint_map"},
        {"lang*", "langgraph_auth_user"},
        {"*", "Langgraph_Auth_Permissions"},
        {"*", "__pregel_resuming"}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        if (is_selected(pairs[i][0], pairs[i][1], *state)) {
            fail_msg("%s selects %s", pairs[i][0], pairs[i][1]);
        }
    }
}

static void other_texts_are_no_patterns(void **state)
{
    static const char *const texts[] = {"",
                                        "!",
                                        "!!a",
                                        "x y",
                                        "x-*-y",
                                        "*x",
                                        "**",
                                        "x:",
                                        "\xc3\xa4",
                                        "user_id",
                                        "THREAD_ID",
                                        "langgraph_auth_user",
                                        "__pregel_x",
                                        "checkpoint_ns",
                                        "langgraph_*",
                                        "Langgraph_auth*",
                                        "__*"};
    char text[131];
    agent_header_pattern_t pattern;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        if (agent_header_read_pattern(&pattern, texts[i])) {
            fail_msg("'%s' is a pattern", texts[i]);
        }
    }
    memset(text, 'a', sizeof(text));
    text[129] = '\0';
    assert_false(agent_header_read_pattern(&pattern, text));
    text[128] = '\0';
    assert_true(agent_header_read_pattern(&pattern, text));
    assert_true(agent_header_read_pattern(&pattern, "!user_id"));
    assert_true(agent_header_read_pattern(&pattern, "!langgraph_*"));
    assert_true(agent_header_read_pattern(&pattern, "lang*"));
}

static bool is_hidden(const char *text, const char *by)
{
    agent_header_pattern_t pattern;
    agent_header_pattern_t other;

    assert_true(agent_header_read_pattern(&pattern, text));
    assert_true(agent_header_read_pattern(&other, by));
    return agent_header_is_hidden(&pattern, &other);
}

static void a_pattern_is_hidden_by_one_that_excludes_all_of_it(void **state)
{
    static const char *const hidden[][2] = {
        {"x-a", "!X-A"},           {"x-a", "!x-*"}, {"X-a", "!*"},
        {"x-a*", "!x-*"},          {"*", "!*"},     {"x-*", "!x-*"},
        {"x-secret", "!x-secret*"}};
    static const char *const seen[][2] = {
        {"x-a", "!x-ab"}, {"x-ab", "!x-a"},
        {"x-*", "!x-a*"}, {"x-a*", "!x-a"},
        {"*", "!x-*"},    {"x-a", "x-*"},
        {"!x-a", "!x-*"}, {"x-secret", "!x-secrets*"}};

    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++) {
        if (!is_hidden(hidden[i][0], hidden[i][1])) {
            fail_msg("%s hides not all of %s", hidden[i][1], hidden[i][0]);
        }
    }
    for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
        if (is_hidden(seen[i][0], seen[i][1])) {
            fail_msg("%s hides all of %s", seen[i][1], seen[i][0]);
        }
    }
}

static void whole_names_of_credentials_are_known(void **state)
{
    static const char *const texts[] = {"Authorization", "proxy-authorization",
                                        "cookie", "X-API-Key"};
    static const char *const others[] = {"!cookie", "cookie*", "x-api-keys"};
    agent_header_pattern_t pattern;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        assert_true(agent_header_read_pattern(&pattern, texts[i]));
        assert_true(agent_header_is_credential(&pattern));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_true(agent_header_read_pattern(&pattern, others[i]));
        assert_false(agent_header_is_credential(&pattern));
    }
}

static void webhooks_get_no_header_of_a_delivery(void **state)
{
    static const char *const names[] = {"Authorization", "x-Tenant", "X_1",
                                        "User-Agent", "content-types"};
    static const char *const others[] = {"",
                                         "a b",
                                         "a:",
                                         "x\r\ny",
                                         "Host",
                                         "content-LENGTH",
                                         "Transfer-Encoding",
                                         "webhook-id",
                                         "Webhook-Signature",
                                         "expect"};
    char text[AGENT_HEADER_NAME_MAX + 2];

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_true(agent_header_is_addable(names[i]));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_false(agent_header_is_addable(others[i]));
    }
    memset(text, 'a', sizeof(text));
    text[AGENT_HEADER_NAME_MAX + 1] = '\0';
    assert_false(agent_header_is_addable(text));
    text[AGENT_HEADER_NAME_MAX] = '\0';
    assert_true(agent_header_is_addable(text));
}

static void a_value_of_a_header_is_one_line(void **state)
{
    static const char *const others[] = {"",    " a",       "a ",   " ",
                                         "a\n", "a\r\nb:c", "a\tb", "\x7f"};
    char text[AGENT_HEADER_VALUE_MAX + 2];

    assert_true(agent_header_is_value("Bearer a b"));
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_false(agent_header_is_value(others[i]));
    }
    memset(text, 'a', sizeof(text));
    text[AGENT_HEADER_VALUE_MAX + 1] = '\0';
    assert_false(agent_header_is_value(text));
    text[AGENT_HEADER_VALUE_MAX] = '\0';
    assert_true(agent_header_is_value(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_pattern_selects_its_headers),
        CHECK_TEST(a_pattern_selects_nothing_else),
        CHECK_TEST(other_texts_are_no_patterns),
        CHECK_TEST(a_pattern_is_hidden_by_one_that_excludes_all_of_it),
        CHECK_TEST(whole_names_of_credentials_are_known),
        CHECK_TEST(webhooks_get_no_header_of_a_delivery),
        CHECK_TEST(a_value_of_a_header_is_one_line)};

    return CHECK_RUN(tests);
}
