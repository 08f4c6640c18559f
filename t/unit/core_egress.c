/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/egress.c core/address.c core/origin.c */
/* URLs that clients name: their notation, and the hosts that may be called. */
#include "check.h"

#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <apr_strings.h>

#include "../../mod_agent/core/address.h"
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

static void urls_of_public_hosts_are_accepted(void **state)
{
    static const char *const urls[] = {
        "https://hooks.example.com/",
        "http://example.com",
        "https://example.com/a/b?c=d&e=%20#f",
        "HTTPS://EXAMPLE.COM/",
        "https://example.com:443/",
        "http://example.com:80/",
        "http://example.com:443/",
        "https://example.com./",
        "https://xn--exmple-cua.com/",
        "http://8.8.8.8/",
        "https://[2001:4860:4860::8888]/x",
        "https://a.b.c.d.example/",
        "https://1.example/",
        "https://localhost.example.com/",
        "https://notlocalhost/",
        "https://example.com/@x",
        "https://example.com/?u=http://127.0.0.1/"};
    const agent_egress_t *rule = agent_egress_make(*state);

    for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++) {
        assert_accepted(rule, urls[i], *state);
    }
}

static void addresses_that_are_not_public_are_refused_in_any_spelling(
    void **state)
{
    static const char *const urls[] = {"http://127.0.0.1/",
                                       "http://127.0.0.1:80/",
                                       "http://127.1/",
                                       "http://127.0.1/",
                                       "http://2130706433/",
                                       "http://0x7f000001/",
                                       "http://0x7f.1/",
                                       "http://0x7F.0.0.0x1/",
                                       "http://0177.0.0.1/",
                                       "http://017700000001/",
                                       "http://0/",
                                       "http://0.0.0.0/",
                                       "http://127.0.0.1#@example.com/",
                                       "http://127.0.0.1?@example.com/",
                                       "http://localhost/",
                                       "http://LOCALHOST/",
                                       "http://localhost./",
                                       "http://a.localhost/",
                                       "http://a.localhost./",
                                       "http://10.0.0.1/",
                                       "http://10.1/",
                                       "http://100.64.0.1/",
                                       "http://169.254.169.254/latest/",
                                       "http://2852039166/",
                                       "http://0xa9fea9fe/",
                                       "http://172.16.0.1/",
                                       "http://192.168.1.1/",
                                       "http://192.0.2.1/",
                                       "http://198.18.0.1/",
                                       "http://224.0.0.1/",
                                       "http://255.255.255.255/",
                                       "http://[::]/",
                                       "http://[::1]/",
                                       "http://[0:0:0:0:0:0:0:1]/",
                                       "http://[::1]:443/",
                                       "http://[::ffff:127.0.0.1]/",
                                       "http://[::ffff:7f00:1]/",
                                       "http://[::ffff:8.8.8.8]/",
                                       "http://[::127.0.0.1]/",
                                       "http://[64:ff9b::7f00:1]/",
                                       "http://[64:ff9b::8.8.8.8]/",
                                       "http://[2002:7f00:1::]/",
                                       "http://[2001::1]/",
                                       "http://[fc00::1]/",
                                       "http://[fd00::1]/",
                                       "http://[FE80::1]/",
                                       "http://[ff02::1]/",
                                       "http://[2001:db8::1]/",
                                       "http://%31%32%37.0.0.1/",
                                       "https://127.0.0.1/"};
    const agent_egress_t *rule = agent_egress_make(*state);

    for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++) {
        assert_refused(rule, urls[i], "this server may call", *state);
    }
}

static void invalid_urls_are_refused_with_the_expected_form(void **state)
{
    static const char *const relative[] = {"/hook",
                                           "hook",
                                           "//example.com/hook",
                                           "?a=b",
                                           "#x",
                                           "example.com/hook",
                                           "http:",
                                           "http:/example.com",
                                           "mailto:x@example.com",
                                           "",
                                           "://"};
    static const char *const other_schemes[] = {"ftp://example.com/",
                                                "file:///etc/passwd",
                                                "gopher://example.com/",
                                                "dict://example.com/",
                                                "ldap://example.com/",
                                                "scp://example.com/",
                                                "ws://example.com/",
                                                "unix://x/",
                                                "httpx://example.com/",
                                                "data://text/plain,x",
                                                "javascript://x/",
                                                "http://",
                                                "https:///path",
                                                "http://exa mple.com/",
                                                "http://[::1/",
                                                "http://[::1]x/",
                                                "http://[zz::1]/",
                                                "http://example.com:99999/",
                                                "http://example.com:x/",
                                                "http://example.com:-1/",
                                                "http://a b/"};
    static const char *const with_user[] = {
        "http://user@example.com/", "http://user:pass@example.com/",
        "http://:pass@example.com/", "http://example.com@127.0.0.1/"};
    static const char *const odd_bytes[] = {
        "http://example.com/\r\nX: y", "http://example.com/\t",
        " http://example.com/",        "http://example.com/ ",
        "http://ex\303\244mple.com/",  "http://127\343\200\2020.0.1/",
        "http://example.com/\177",     "http://example.com/\001"};
    const agent_egress_t *rule = agent_egress_make(*state);

    for (size_t i = 0; i < sizeof(relative) / sizeof(*relative); i++) {
        assert_refused(rule, relative[i], "http", *state);
    }
    for (size_t i = 0; i < sizeof(other_schemes) / sizeof(char *); i++) {
        assert_refused(rule, other_schemes[i], "", *state);
    }
    for (size_t i = 0; i < sizeof(with_user) / sizeof(*with_user); i++) {
        assert_refused(rule, with_user[i], "user and password", *state);
    }
    for (size_t i = 0; i < sizeof(odd_bytes) / sizeof(*odd_bytes); i++) {
        assert_refused(rule, odd_bytes[i], "printable ASCII", *state);
    }
    assert_refused(rule, "/hook", "call this server itself", *state);
    assert_refused(rule, "ftp://example.com/", "http:// or https://", *state);
    assert_refused(rule, "http://[fe80::1%25eth0]/", "zone", *state);
}

static void a_url_has_at_most_2048_bytes(void **state)
{
    const agent_egress_t *rule = agent_egress_make(*state);
    char url[2050] = "https://example.com/";

    memset(url + strlen(url), 'a', sizeof(url) - 1 - strlen(url));
    assert_refused(rule, url, "at most 2048 bytes", *state);
    url[2048] = '\0';
    assert_accepted(rule, url, *state);
}

static void a_target_is_host_and_port_as_they_are_compared(void **state)
{
    agent_egress_target_t target;

    assert_null(
        agent_egress_read_url(&target, "https://Hooks.Example.COM./x", *state));
    assert_string_equal(target.host, "hooks.example.com");
    assert_int_equal(target.port, 443);
    assert_null(
        agent_egress_read_url(&target, "http://[2A00::1]:8080", *state));
    assert_string_equal(target.host, "2a00::1");
    assert_int_equal(target.port, 8080);
}

static void other_ports_than_80_and_443_must_be_allowed(void **state)
{
    agent_egress_t *rule = agent_egress_make(*state);

    assert_refused(rule, "http://example.com:8080/", "80, 443", *state);
    assert_refused(rule, "http://example.com:22/", "80, 443", *state);
    assert_true(agent_egress_allow_ports(rule, "8080"));
    assert_true(agent_egress_allow_ports(rule, "9000-9002"));
    assert_accepted(rule, "http://example.com:8080/", *state);
    assert_accepted(rule, "http://example.com:9000/", *state);
    assert_accepted(rule, "http://example.com:9002/", *state);
    assert_refused(rule, "http://example.com:9003/", "8080, 9000-9002", *state);
    assert_refused(rule, "http://example.com/", "8080, 9000-9002", *state);
}

static void ports_are_numbers_or_ranges(void **state)
{
    static const char *const bad[] = {
        "",    "0",   "65536", "x",     "80x",
        "80-", "-80", "90-80", "80-x",  "+80",
        " 80", "80 ", "80,81", "1-2-3", "99999999999999999999"};
    agent_egress_t *rule = agent_egress_make(*state);

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (agent_egress_allow_ports(rule, bad[i])) {
            fail_msg("'%s' was accepted", bad[i]);
        }
    }
    assert_true(agent_egress_allow_ports(rule, "1-65535"));
    assert_true(agent_egress_allow_ports(rule, "80-80"));
}

static bool permits_from(const agent_egress_t *rule,
                         const apr_array_header_t *own, const char *url,
                         const char *address, apr_pool_t *pool)
{
    agent_egress_target_t target;
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};

    assert_null(agent_egress_read_url(&target, url, pool));
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
        return agent_egress_permits(rule, own, &target, (struct sockaddr *)&v4);
    }
    assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
    return agent_egress_permits(rule, own, &target, (struct sockaddr *)&v6);
}

static bool permits(const agent_egress_t *rule, const char *url,
                    const char *address, apr_pool_t *pool)
{
    return permits_from(rule, NULL, url, address, pool);
}

static void addresses_of_a_name_are_checked_by_the_same_rule(void **state)
{
    const agent_egress_t *rule = agent_egress_make(*state);
    const char *url = "https://hooks.example.com/";

    assert_accepted(rule, url, *state);
    assert_true(permits(rule, url, "8.8.8.8", *state));
    assert_false(permits(rule, url, "127.0.0.1", *state));
    assert_false(permits(rule, url, "10.0.0.1", *state));
    assert_true(permits(rule, url, "2606:4700::1", *state));
    assert_false(permits(rule, url, "::ffff:8.8.8.8", *state));
    assert_false(permits(rule, url, "fd00::1", *state));
}

static void blocks_and_hosts_can_be_allowed(void **state)
{
    agent_egress_t *rule = agent_egress_make(*state);

    assert_true(agent_egress_allow(rule, "10.20.0.0/16"));
    assert_true(agent_egress_allow(rule, "fd00::/8"));
    assert_true(agent_egress_allow(rule, "Hooks.Internal."));
    assert_accepted(rule, "http://10.20.30.40/", *state);
    assert_accepted(rule, "http://[fd00::1]/", *state);
    assert_refused(rule, "http://10.21.0.1/", "may call", *state);
    assert_true(permits(rule, "http://example.com/", "10.20.0.1", *state));
    assert_true(permits(rule, "http://hooks.internal/", "127.0.0.1", *state));
    assert_true(permits(rule, "http://HOOKS.INTERNAL./", "10.0.0.1", *state));
    assert_false(permits(rule, "http://x.hooks.internal/", "10.0.0.1", *state));
    assert_false(permits(rule, "http://hooks.internal.x/", "10.0.0.1", *state));
    assert_refused(rule, "http://hooks.internal:81/", "80, 443", *state);
}

static void localhost_is_allowed_by_its_name_or_its_address(void **state)
{
    agent_egress_t *by_name = agent_egress_make(*state);
    agent_egress_t *by_address = agent_egress_make(*state);

    assert_true(agent_egress_allow(by_name, "localhost"));
    assert_accepted(by_name, "http://localhost/", *state);
    assert_refused(by_name, "http://127.0.0.1/", "may call", *state);
    assert_true(agent_egress_allow(by_address, "127.0.0.0/8"));
    assert_accepted(by_address, "http://localhost/", *state);
    assert_accepted(by_address, "http://2130706433/", *state);
    assert_refused(by_address, "http://[::1]/", "may call", *state);
}

static void texts_other_than_blocks_and_hosts_cannot_be_allowed(void **state)
{
    static const char *const bad[] = {"",
                                      ".",
                                      "..",
                                      ".example.com",
                                      "10.0.0.300",
                                      "10.0.0.1/8",
                                      "10.0.0",
                                      "1",
                                      "example.com/",
                                      "http://example.com",
                                      "exa mple",
                                      "a:b",
                                      "*",
                                      "*.example.com",
                                      "example.com:80",
                                      "[::1]",
                                      "::g",
                                      "ex\303\244mple.com"};
    agent_egress_t *rule = agent_egress_make(*state);

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (agent_egress_allow(rule, bad[i])) {
            fail_msg("'%s' was accepted", bad[i]);
        }
    }
    assert_int_equal(rule->blocks->nelts + rule->hosts->nelts, 0);
}

static void the_servers_own_addresses_are_refused_unless_they_are_allowed(
    void **state)
{
    agent_egress_t *rule = agent_egress_make(*state);
    apr_array_header_t *own = apr_array_make(*state, 2,
                                             sizeof(agent_address_block_t));
    agent_egress_target_t target;
    const char *url = "https://hooks.example.com/";

    assert_true(agent_address_read_block(apr_array_push(own), "8.8.8.8"));
    assert_true(agent_address_read_block(apr_array_push(own), "2606:4700::1"));
    assert_false(permits_from(rule, own, url, "8.8.8.8", *state));
    assert_false(permits_from(rule, own, url, "2606:4700::1", *state));
    assert_true(permits_from(rule, own, url, "8.8.8.9", *state));
    assert_true(permits_from(rule, own, url, "2606:4700::2", *state));
    assert_null(agent_egress_read_url(&target, "http://8.8.8.8/", *state));
    assert_non_null(agent_egress_check(rule, own, &target, *state));
    assert_true(agent_egress_allow(rule, "8.8.8.0/24"));
    assert_true(permits_from(rule, own, url, "8.8.8.8", *state));
    assert_null(agent_egress_check(rule, own, &target, *state));
    assert_false(permits_from(rule, own, url, "2606:4700::1", *state));
    assert_true(agent_egress_allow(rule, "hooks.example.com"));
    assert_true(permits_from(rule, own, url, "2606:4700::1", *state));
}

static void denied_addresses_are_refused_even_if_allowed(void **state)
{
    agent_egress_t *rule = agent_egress_make(*state);
    const char *url = "https://hooks.internal/";

    assert_true(agent_egress_allow(rule, "hooks.internal"));
    assert_true(agent_egress_allow(rule, "10.0.0.0/8"));
    assert_true(agent_egress_deny(rule, "10.1.0.0/16"));
    assert_true(agent_egress_deny(rule, "8.8.8.8"));
    assert_true(agent_egress_deny(rule, "2606:4700::/32"));
    assert_true(permits(rule, url, "10.2.0.1", *state));
    assert_false(permits(rule, url, "10.1.0.1", *state));
    assert_false(permits(rule, url, "::ffff:10.1.0.1", *state));
    assert_true(permits(rule, url, "::ffff:10.2.0.1", *state));
    assert_false(permits(rule, url, "8.8.8.8", *state));
    assert_false(permits(rule, url, "2606:4700::1", *state));
    assert_refused(rule, "http://8.8.8.8/", "this server may call", *state);
    assert_false(agent_egress_deny(rule, "hooks.internal"));
    assert_false(agent_egress_deny(rule, "10.1.0.1/16"));
}

static void a_mapped_block_is_the_ipv4_block_that_it_stands_for(void **state)
{
    agent_egress_t *rule = agent_egress_make(*state);
    const char *url = "https://hooks.example.com/";

    assert_true(agent_egress_deny(rule, "::ffff:8.8.8.8"));
    assert_true(agent_egress_deny(rule, "::ffff:9.0.0.0/104"));
    assert_false(permits(rule, url, "8.8.8.8", *state));
    assert_true(permits(rule, url, "8.8.8.9", *state));
    assert_false(permits(rule, url, "9.1.2.3", *state));
    assert_refused(rule, "http://8.8.8.8/", "may call", *state);
    assert_true(agent_egress_allow(rule, "::ffff:127.0.0.0/104"));
    assert_true(permits(rule, url, "127.0.0.1", *state));
    assert_true(agent_egress_deny(rule, "::ffff:0:0/96"));
    assert_false(permits(rule, url, "1.1.1.1", *state));
    assert_true(permits(rule, url, "2606:4700::1", *state));
}

static void a_block_of_ipv6_is_not_one_of_ipv4(void **state)
{
    agent_egress_t *rule = agent_egress_make(*state);
    const char *url = "https://hooks.example.com/";

    assert_false(agent_egress_deny(rule, "::8000:0:0/81"));
    assert_false(agent_egress_deny(rule, "::fffe:0:0/95"));
    assert_true(agent_egress_deny(rule, "::/80"));
    assert_true(agent_egress_deny(rule, "::fffe:0:0/96"));
    assert_true(permits(rule, url, "8.8.8.8", *state));
    assert_true(agent_egress_deny(rule, "::/0"));
    assert_true(permits(rule, url, "8.8.8.8", *state));
    assert_false(permits(rule, url, "2606:4700::1", *state));
}

static void a_refusal_says_what_was_expected(void **state)
{
    static const char *const cases[][2] = {
        {"10.0.0.1/8", "no bits after its length"},
        {"hooks.internal", "no names"},
        {"[::1]", "without brackets"},
        {"[::1]/128", "without brackets"},
        {"::fffe:0:0/95", "IPv4 block"},
        {"10.0.0.300", "addresses like"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_non_null(
            strstr(agent_egress_expected(cases[i][0], false), cases[i][1]));
    }
}

static void this_hosts_addresses_are_those_of_its_interfaces(void **state)
{
    const apr_array_header_t *own = agent_address_list_own(*state);
    struct sockaddr_in v4 = {.sin_family = AF_INET};

    assert_non_null(own);
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(agent_address_is_in_any(own, (struct sockaddr *)&v4));
    v4.sin_addr.s_addr = htonl(0x08080808);
    assert_false(agent_address_is_in_any(own, (struct sockaddr *)&v4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(urls_of_public_hosts_are_accepted),
        CHECK_TEST(addresses_that_are_not_public_are_refused_in_any_spelling),
        CHECK_TEST(invalid_urls_are_refused_with_the_expected_form),
        CHECK_TEST(a_url_has_at_most_2048_bytes),
        CHECK_TEST(a_target_is_host_and_port_as_they_are_compared),
        CHECK_TEST(other_ports_than_80_and_443_must_be_allowed),
        CHECK_TEST(ports_are_numbers_or_ranges),
        CHECK_TEST(addresses_of_a_name_are_checked_by_the_same_rule),
        CHECK_TEST(blocks_and_hosts_can_be_allowed),
        CHECK_TEST(localhost_is_allowed_by_its_name_or_its_address),
        CHECK_TEST(texts_other_than_blocks_and_hosts_cannot_be_allowed),
        CHECK_TEST(
            the_servers_own_addresses_are_refused_unless_they_are_allowed),
        CHECK_TEST(denied_addresses_are_refused_even_if_allowed),
        CHECK_TEST(a_mapped_block_is_the_ipv4_block_that_it_stands_for),
        CHECK_TEST(a_block_of_ipv6_is_not_one_of_ipv4),
        CHECK_TEST(a_refusal_says_what_was_expected),
        CHECK_TEST(this_hosts_addresses_are_those_of_its_interfaces)};

    return CHECK_RUN(tests);
}
