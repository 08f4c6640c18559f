/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/origin.c */
/* Origins of web pages: their notation, and those that a pattern allows. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/core/origin.h"

static bool is_allowed(const char *pattern, const char *text, apr_pool_t *pool)
{
    apr_array_header_t *patterns = apr_array_make(
        pool, 1, sizeof(agent_origin_pattern_t));

    if (!agent_origin_read_pattern(apr_array_push(patterns), pattern)) {
        fail_msg("'%s' is not a pattern", pattern);
    }
    return agent_origin_is_allowed(patterns, text);
}

static void a_pattern_allows_its_origins(void **state)
{
    static const char *const pairs[][2] = {
        {"https://app.example.com", "https://app.example.com"},
        {"https://app.example.com:443", "https://app.example.com"},
        {"https://APP.example.com", "https://app.example.com"},
        {"http://localhost:3000", "http://localhost:3000"},
        {"http://localhost:*", "http://localhost"},
        {"http://localhost:*", "http://localhost:65535"},
        {"http://[::1]:*", "http://[::1]:8123"},
        {"https://*.example.com", "https://app.example.com"},
        {"https://*.example.com", "https://a.b.example.com:443"},
        {"https://*.example.com:*", "https://a.example.com:1"},
        {"tauri://localhost", "tauri://localhost"},
        {"chrome-extension://abc", "chrome-extension://abc"},
        {"*", "https://anything.example"},
        {"*", "null"}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        if (!is_allowed(pairs[i][0], pairs[i][1], *state)) {
            fail_msg("%s does not allow %s", pairs[i][0], pairs[i][1]);
        }
    }
}

static void a_pattern_allows_nothing_else(void **state)
{
    static const char *const pairs[][2] = {
        {"https://app.example.com", "http://app.example.com"},
        {"https://app.example.com", "https://app.example.com:444"},
        {"https://app.example.com", "https://app.example.com.evil.example"},
        {"https://app.example.com", "https://xapp.example.com"},
        {"https://app.example.com", "https://app-example.com"},
        {"https://app.example.com", "https://app.example.com."},
        {"https://app.example.com", "https://app.example.com/"},
        {"https://app.example.com",
         "https://app.example.com, https://app.example.com"},
        {"https://app.example.com", "https://app.example.com@evil.example"},
        {"https://app.example.com", "null"},
        {"https://app.example.com", ""},
        {"http://localhost:*", "http://localhost.evil.example:80"},
        {"http://localhost:*", "http://localhost:x"},
        {"http://localhost:*", "http://localhost:"},
        {"http://localhost:*", "http://localhost:65536"},
        {"http://localhost:*", "http://localhost:0"},
        {"http://localhost:*", "https://localhost"},
        {"https://*.example.com", "https://example.com"},
        {"https://*.example.com", "https://.example.com"},
        {"https://*.example.com", "https://badexample.com"},
        {"https://*.example.com", "https://a.example.com.evil.example"},
        {"https://*.example.com", "https://a.example.com:8443"},
        {"http://[::1]:*", "http://[::1"},
        {"http://[::1]:*", "http://[::2]"}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        if (is_allowed(pairs[i][0], pairs[i][1], *state)) {
            fail_msg("%s allows %s", pairs[i][0], pairs[i][1]);
        }
    }
}

static void any_other_notation_of_a_pattern_is_refused(void **state)
{
    static const char *const texts[] = {"",
                                        "null",
                                        "app.example.com",
                                        "https://",
                                        "https://*",
                                        "https://*example.com",
                                        "https://a.*.example.com",
                                        "https://app.example.com/",
                                        "https://app.example.com:**",
                                        "https://app.example.com:",
                                        "https://[]",
                                        "https://[::1",
                                        "https://user@example.com",
                                        "*://example.com",
                                        "ftp://example.com",
                                        "WSS://example.com:*",
                                        "file://x",
                                        "1http://example.com",
                                        "**"};
    agent_origin_pattern_t pattern;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        if (agent_origin_read_pattern(&pattern, texts[i])) {
            fail_msg("'%s' was accepted", texts[i]);
        }
    }
}

static void an_origin_is_a_server_by_scheme_host_and_port(void **state)
{
    agent_origin_t origin;

    assert_true(agent_origin_read(&origin, "https://app.example.com"));
    assert_true(agent_origin_is(&origin, "https", "app.example.com", 0));
    assert_true(agent_origin_is(&origin, "https", "APP.example.com", 443));
    assert_false(agent_origin_is(&origin, "http", "app.example.com", 443));
    assert_false(agent_origin_is(&origin, "https", "app.example.com", 8443));
    assert_false(agent_origin_is(&origin, "https", "app.example.co", 0));
    assert_true(agent_origin_read(&origin, "http://[::1]:8123"));
    assert_true(agent_origin_is(&origin, "http", "::1", 8123));
    assert_true(agent_origin_is(&origin, "http", "[::1]", 8123));
    assert_false(agent_origin_is(&origin, "http", "::1", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_pattern_allows_its_origins),
        CHECK_TEST(a_pattern_allows_nothing_else),
        CHECK_TEST(any_other_notation_of_a_pattern_is_refused),
        CHECK_TEST(an_origin_is_a_server_by_scheme_host_and_port)};

    return CHECK_RUN(tests);
}
