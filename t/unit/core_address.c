/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/address.c */
/* Blocks of addresses, and which addresses are hosts of the Internet. */
#include "check.h"

#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "../../mod_agent/core/address.h"

typedef union any_address_t {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
} any_address_t;

static const struct sockaddr *address_of(any_address_t *out, const char *text)
{
    memset(out, 0, sizeof(*out));
    if (strchr(text, ':') != NULL) {
        out->v6.sin6_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, text, &out->v6.sin6_addr), 1);
    }
    else {
        out->v4.sin_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, text, &out->v4.sin_addr), 1);
    }
    return &out->any;
}

static void hosts_of_the_internet_are_public(void **state)
{
    /* The first and the last outside of each refused block, and some known
     * ones. */
    static const char *const addresses[] = {
        "1.0.0.0", "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0",
        "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
        "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255",
        "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
        "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255",
        "203.0.114.0", "223.255.255.255",
        /* Global unicast of IPv6. */
        "2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1",
        "2001:db9::", "2003::1", "2606:4700:4700::1111", "2a00:1450::1",
        "3ffe:ffff::1", "3fff:1000::1", "3fff:ffff::1"};
    any_address_t address;

    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        if (!agent_address_is_public(address_of(&address, addresses[i]))) {
            fail_msg("%s is not public", addresses[i]);
        }
    }
}

static void other_addresses_are_not_public(void **state)
{
    static const char *const addresses[] = {
        /* Unspecified and this network; private; shared by carriers. */
        "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.1.2.3", "10.255.255.255",
        "100.64.0.0", "100.100.100.200", "100.127.255.255",
        /* Loopback; link-local with its metadata services. */
        "127.0.0.0", "127.0.0.1", "127.1.2.3", "127.255.255.255", "169.254.0.0",
        "169.254.169.254", "169.254.255.255",
        /* Private; assignments; documentation; relays; benchmarks. */
        "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.170",
        "192.0.0.255", "192.0.2.1", "192.88.99.1", "192.168.0.0",
        "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.7",
        "203.0.113.255",
        /* Multicast, reserved, broadcast. */
        "224.0.0.1", "239.255.255.255", "240.0.0.0", "255.255.255.254",
        "255.255.255.255",
        /* Unspecified, loopback. */
        "::", "::1",
        /* IPv4 inside: mapped, compatible, translated, NAT64, 6to4, Teredo,
         * ISATAP on a link; of a private and of a public address. */
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8",
        "::ffff:169.254.169.254", "::127.0.0.1", "::8.8.8.8",
        "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8",
        "64:ff9b:1::10.0.0.1", "2002:7f00:1::", "2002:7f00:1::1",
        "2002:a00:1::1", "2002:808:808::1", "2001::1",
        "2001:0:7f00:1::", "fe80::5efe:127.0.0.1",
        /* Assignments, discard, documentation, segment routing. */
        "100::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff:ffff::1",
        "2001:db8::1", "2001:db8:ffff::1", "3fff::1", "3fff:fff::1", "5f00::1",
        "4000::1", "1fff:ffff::1",
        /* Unique-local, link-local, site-local, multicast. */
        "fc00::1", "fd00::1", "fd12:3456:789a::1", "fdff:ffff::1", "fe80::1",
        "febf::1", "fec0::1", "feff::1", "ff00::1", "ff02::1", "ff0e::1",
        "ffff::1"};
    any_address_t address;

    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        if (agent_address_is_public(address_of(&address, addresses[i]))) {
            fail_msg("%s is public", addresses[i]);
        }
    }
}

static void addresses_of_another_family_are_not_public(void **state)
{
    any_address_t address;

    memset(&address, 0, sizeof(address));
    address.local.sun_family = AF_UNIX;
    assert_false(agent_address_is_public(&address.any));
    address.local.sun_family = AF_UNSPEC;
    assert_false(agent_address_is_public(&address.any));
}

static void assert_block(const char *text, const char *in, const char *out)
{
    agent_address_block_t block;
    any_address_t address;

    assert_true(agent_address_read_block(&block, text));
    assert_true(agent_address_is_in(&block, address_of(&address, in)));
    if (out != NULL) {
        assert_false(agent_address_is_in(&block, address_of(&address, out)));
    }
}

static void a_block_contains_the_addresses_with_its_prefix(void **state)
{
    assert_block("10.0.0.0/8", "10.255.255.255", "11.0.0.0");
    assert_block("10.0.0.0/8", "10.0.0.0", "9.255.255.255");
    assert_block("192.168.4.0/22", "192.168.7.255", "192.168.8.0");
    assert_block("127.0.0.1", "127.0.0.1", "127.0.0.2");
    assert_block("127.0.0.1/32", "127.0.0.1", "127.0.0.0");
    assert_block("128.0.0.0/1", "255.0.0.1", "127.0.0.1");
    assert_block("0.0.0.0/0", "1.2.3.4", "::1");
    assert_block("::/0", "fd00::1", "1.2.3.4");
    assert_block("fd00::/8", "fdff::1", "fc00::1");
    assert_block("2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::");
    assert_block("::1", "::1", "::2");
    assert_block("FE80::/10", "febf::1", "fec0::1");
    assert_block("::ffff:10.0.0.0/104", "::ffff:10.1.1.1", "10.1.1.1");
}

static void an_ipv4_block_holds_no_ipv6_form_of_its_addresses(void **state)
{
    agent_address_block_t block;
    any_address_t address;

    assert_true(agent_address_read_block(&block, "10.0.0.0/8"));
    assert_false(
        agent_address_is_in(&block, address_of(&address, "::ffff:10.0.0.1")));
}

static void any_other_notation_of_a_block_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "/",
        "/8",
        "10",
        "10.0",
        "10.0.0",
        "10.0.0.0.0",
        "10.0.0.256",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/+8",
        "10.0.0.0/8x",
        "10.0.0.0/ 8",
        "10.0.0.0/8/8",
        " 10.0.0.0/8",
        "10.0.0.0 /8",
        "10.0.0.0/99999999999999999999",
        "0x0a.0.0.0/8",
        "012.0.0.0/8",
        "167772160/8",
        "10.0.0.1/8",
        "127.0.0.1/31",
        "::1/127",
        "::/129",
        "fd00::1/8",
        "[::1]",
        "fe80::1%eth0",
        ":",
        ":::",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "fd00::/8x",
        "localhost",
        "::ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255.255.255.255.255"};
    agent_address_block_t block;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        if (agent_address_read_block(&block, texts[i])) {
            fail_msg("'%s' was accepted", texts[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(hosts_of_the_internet_are_public),
        CHECK_TEST(other_addresses_are_not_public),
        CHECK_TEST(addresses_of_another_family_are_not_public),
        CHECK_TEST(a_block_contains_the_addresses_with_its_prefix),
        CHECK_TEST(an_ipv4_block_holds_no_ipv6_form_of_its_addresses),
        CHECK_TEST(any_other_notation_of_a_block_is_refused)};

    return CHECK_RUN(tests);
}
