/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/egress.c core/address.c core/origin.c */
/* Schemes and hosts of URLs that clients name. */
#include "check.h"

#include <string.h>

#include "../../mod_agent/core/egress.h"

/* NULL when a POST with this URL would be accepted. */
static const char *check_url(const agent_egress_t *rule, const char *url,
                             apr_pool_t *pool)
{
    agent_egress_target_t target;
    const char *expected = agent_egress_read_url(&target, url, pool);

    return expected ? expected : agent_egress_check(rule, NULL, &target, pool);
}

static void assert_refused(const agent_egress_t *rule, const char *url,
                           const char *why, apr_pool_t *pool)
{
    const char *expected = check_url(rule, url, pool);

    if (expected == NULL || strstr(expected, why) == NULL) {
        fail_msg("%s: '%s' instead of '%s'", url, expected ? expected : "fine",
                 why);
    }
}

static void assert_accepted(const agent_egress_t *rule, const char *url,
                            apr_pool_t *pool)
{
    const char *expected = check_url(rule, url, pool);

    if (expected != NULL) {
        fail_msg("%s: %s", url, expected);
    }
}

static void origins_limit_schemes_and_hosts(void **state)
{
    static const char why[] = "whose scheme and host";
    agent_egress_t *rule = agent_egress_make(*state);

    assert_true(agent_egress_allow_origin(rule, "https://*.example.com"));
    assert_true(agent_egress_allow_origin(rule, "http://a.example:*"));
    assert_true(agent_egress_allow_ports(rule, "1-65535"));
    assert_accepted(rule, "https://hooks.example.com/x", *state);
    assert_accepted(rule, "HTTPS://A.B.EXAMPLE.COM.:443/x", *state);
    assert_accepted(rule, "http://a.example:8080/", *state);
    assert_refused(rule, "https://example.com/", why, *state);
    assert_refused(rule, "https://hooks.example.com:8443/", why, *state);
    assert_refused(rule, "http://hooks.example.com/", why, *state);
    assert_refused(rule, "https://a.example/", why, *state);
    assert_refused(rule, "https://hooks.example.com.evil.net/", why, *state);
    assert_refused(rule, "https://[2001:4860:4860::8888]/", why, *state);
    assert_true(agent_egress_allow_origin(rule, "https"));
    assert_accepted(rule, "https://[2001:4860:4860::8888]/", *state);
    assert_accepted(rule, "https://hooks.example.com:8443/", *state);
    assert_refused(rule, "http://8.8.8.8/", why, *state);
    assert_refused(rule, "https://127.0.0.1/", "may call", *state);
}

static void the_word_https_alone_refuses_http(void **state)
{
    agent_egress_t *rule = agent_egress_make(*state);
    agent_egress_target_t target;

    assert_true(agent_egress_allow_origin(rule, "https"));
    assert_accepted(rule, "https://example.com/", *state);
    assert_refused(rule, "http://example.com/", "whose scheme", *state);
    assert_null(agent_egress_read_url(&target, "http://a.example/", *state));
    assert_string_equal(agent_egress_directive(rule, &target, *state),
                        "AgentWebhookOrigin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(origins_limit_schemes_and_hosts),
        CHECK_TEST(the_word_https_alone_refuses_http)};

    return CHECK_RUN(tests);
}
