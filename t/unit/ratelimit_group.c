/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/group/member.c */
/* OBJECTS: ../t/bench/group_store.c ../t/bench/group_marks.c */
/* The rules of hosts and store together: hosts that are replaced, or leave. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/group/member.h"
#include "../../mod_ratelimit_regional/group/period.h"
#include "../bench/group_store.h"

#define HOSTS 3

static const unsigned char key[RLR_STORE_KEY_BYTES] = {0};
static const rlr_limit_t nine = {9, 10};

typedef struct host_t {
    rlr_member_t member;
    rlr_member_config_t config;
} host_t;

typedef struct case_t {
    group_store_t *store;
    uint64_t now_ms;
    host_t hosts[HOSTS];
    uint64_t tag;
    rlr_limit_t limit;
    int64_t wait_ms; /* of the last call */
    rlr_store_status_t status;
} case_t;

static void start_host(case_t *test, int i)
{
    host_t *host = &test->hosts[i];

    rlr_member_init(&host->member);
    host->config.members = HOSTS;
    host->config.share_ms = 200000;
    host->config.id[0]++;
    host->config.id[1] = (unsigned char)i;
}

/* One call, answered at once; returns how many of `wanted` were granted. */
static uint32_t call(case_t *test, int i, uint32_t wanted, uint32_t flags)
{
    host_t *host = &test->hosts[i];
    bool alone;
    rlr_store_kind_t kind = rlr_member_next(&host->member, &alone,
                                            test->now_ms);
    rlr_store_grant_t grant = {0, -1, 0, 0};
    rlr_store_reply_t reply = {.grants = &grant};
    rlr_store_item_t item = {.limit = test->limit,
                             .wanted = wanted,
                             .waiting = wanted,
                             .tag = ++test->tag};
    rlr_store_call_t sent;

    rlr_member_fill(&sent, &host->member, &host->config, kind, test->now_ms);
    sent.flags |= flags;
    sent.items = &item;
    sent.item_count = kind == RLR_STORE_HEARTBEAT;
    group_store_call(test->store, test->now_ms * 1000, &sent, &reply);
    rlr_member_answer(&host->member, &sent, &reply, host->member.generation,
                      test->now_ms, test->now_ms);
    if (kind == RLR_STORE_REPORT) {
        rlr_member_reported(&host->member, host->member.generation);
    }
    test->wait_ms = grant.wait_ms;
    test->status = reply.status;
    return grant.granted;
}

/* Time passes, with heartbeats of the hosts of the mask. */
static void pass(case_t *test, uint64_t ms, unsigned mask)
{
    for (uint64_t end = test->now_ms + ms; test->now_ms < end;
         test->now_ms += 100) {
        for (int i = 0; i < HOSTS; i++) {
            if ((mask >> i & 1) != 0) {
                call(test, i, 0, 0);
            }
        }
    }
}

/* Three hosts that have just been started. */
static void prepare(case_t *test)
{
    memset(test, 0, sizeof(*test));
    test->store = group_store_make(1, 1000000);
    test->now_ms = 1000;
    test->limit = nine;
    for (int i = 0; i < HOSTS; i++) {
        start_host(test, i);
    }
}

/* Three hosts that have been connected for longer than an interval. */
static void begin(case_t *test)
{
    prepare(test);
    pass(test, 30000, 7);
    for (int i = 0; i < HOSTS; i++) {
        assert_int_equal(test->hosts[i].member.number, i);
    }
}

static void end(case_t *test)
{
    group_store_drop(test->store);
}

static uint32_t local(const case_t *test, int i)
{
    return rlr_member_local(&test->hosts[i].member, &test->hosts[i].config, key,
                            nine, test->now_ms);
}

/* Host 0 is cut off, and its number given to host 1, which was killed before:
 * all numbers have a host connected while host 0 admits its share. */
static void replace_cut_off_host(case_t *test)
{
    begin(test);
    /* Until the share of the killed host is no longer reserved. */
    pass(test, 277000, 5);
    start_host(test, 1);
    pass(test, 61000, 4);
    pass(test, 80000, 6);
    assert_int_equal(test->hosts[1].member.number, 0);
    assert_int_equal(local(test, 0), 3);
}

static void a_number_is_reserved_while_its_earlier_host_may_use_it(void **state)
{
    case_t test;

    replace_cut_off_host(&test);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    /* Until it may not be used, and is not. */
    pass(&test, 200000, 6);
    assert_int_equal(local(&test, 0), 0);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

/* Without RateLimitStoreShareTime: as long as the host may bring its number to
 * another server, which answers at the same time as this one for up to 60 s. */
static void a_number_is_reserved_while_its_host_may_bring_it(void **state)
{
    static const uint64_t may_bring_ms = 58000;
    static const uint64_t two_stores_ms = 60000;
    case_t test;
    rlr_store_call_t sent;
    uint64_t cut_ms;

    prepare(&test);
    for (int i = 0; i < HOSTS; i++) {
        test.hosts[i].config.share_ms = 0;
    }
    pass(&test, 30000, 7);
    cut_ms = test.now_ms - 100;
    rlr_member_fill(&sent, &test.hosts[0].member, &test.hosts[0].config,
                    RLR_STORE_HEARTBEAT, cut_ms + may_bring_ms - 1);
    assert_true((sent.flags & RLR_STORE_BRING) != 0);
    pass(&test, may_bring_ms + two_stores_ms, 6);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    pass(&test, 30000, 6);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

/* Asks for one admission when the wait is nearly over, and then. */
static void assert_wait_is_true(case_t *test, unsigned mask)
{
    uint64_t at_ms = test->now_ms + (uint64_t)test->wait_ms;

    pass(test, at_ms - test->now_ms - 100, mask);
    test->now_ms = at_ms - 1;
    assert_int_equal(call(test, 2, 1, 0), 0);
    assert_int_equal(test->wait_ms, 1);
    test->now_ms = at_ms;
    assert_int_equal(call(test, 2, 1, 0), 1);
}

static void the_wait_is_true_while_a_share_is_reserved(void **state)
{
    case_t test;

    begin(&test);
    /* The only admission is the share of host 0, which dies. */
    test.limit.count = 1;
    pass(&test, 5000, 6);
    assert_int_equal(call(&test, 2, 1, 0), 0);
    assert_true(test.wait_ms > 200000);
    assert_wait_is_true(&test, 6);
    end(&test);
}

static void the_wait_is_true_while_an_admission_and_a_share_count(void **state)
{
    case_t test;

    begin(&test);
    pass(&test, 5000, 6);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    assert_int_equal(call(&test, 2, 1, 0), 0);
    assert_int_equal(test.wait_ms, 10001);
    assert_wait_is_true(&test, 6);
    end(&test);
}

static void the_wait_is_true_after_a_first_start(void **state)
{
    case_t test;

    prepare(&test);
    pass(&test, 1000, 7);
    assert_int_equal(call(&test, 2, 1, 0), 0);
    assert_wait_is_true(&test, 7);
    end(&test);
}

static void the_share_of_a_host_that_has_left_is_not_reserved(void **state)
{
    case_t test;

    begin(&test);
    call(&test, 1, 0, RLR_STORE_LEAVE);
    pass(&test, 10000, 5);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

static void a_new_host_takes_the_number_of_one_that_has_left(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(call(&test, 2, 4, 0), 4);
    call(&test, 1, 0, RLR_STORE_LEAVE);
    start_host(&test, 1);
    call(&test, 1, 0, 0);
    /* The four of before count. */
    assert_int_equal(call(&test, 1, 9, 0), 5);
    assert_int_equal(test.hosts[1].member.number, 1);
    end(&test);
}

/* Starts host 1 again, and connects it. */
static void restart_host(case_t *test, bool was_member)
{
    start_host(test, 1);
    test->hosts[1].member.was_member = was_member;
    call(test, 1, 0, 0);
    call(test, 1, 0, 0);
    assert_int_equal(test->hosts[1].member.number, 1);
}

/* It may have had another number, and used the share of that. */
static void a_host_that_is_not_new_waits_for_the_number(void **state)
{
    case_t test;

    begin(&test);
    call(&test, 1, 0, RLR_STORE_LEAVE);
    restart_host(&test, true);
    pass(&test, 60000, 7);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    end(&test);
}

static void the_share_that_a_host_has_used_before_it_left_counts(void **state)
{
    case_t test;

    begin(&test);
    pass(&test, 40000, 5);
    assert_int_equal(local(&test, 1), 3);
    rlr_member_use(&test.hosts[1].member, nine.interval_sec, test.now_ms);
    call(&test, 1, 0, 0);
    call(&test, 1, 0, RLR_STORE_LEAVE);
    restart_host(&test, false);
    assert_int_equal(call(&test, 2, 9, 0), 6);
    pass(&test, 15000, 7);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

static void a_call_of_a_host_that_has_left_is_not_executed(void **state)
{
    case_t test;
    rlr_member_t before;

    begin(&test);
    before = test.hosts[1].member;
    call(&test, 1, 0, RLR_STORE_LEAVE);
    test.hosts[1].member = before;
    assert_int_equal(call(&test, 1, 9, 0), 0);
    /* Nor does a second leave take another number. */
    restart_host(&test, false);
    test.hosts[1].config.id[0]--;
    test.hosts[1].member = before;
    call(&test, 1, 0, RLR_STORE_LEAVE);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    end(&test);
}

/* Host i leaves; another one is started in a group of two hosts. */
static void change_host(case_t *test, int i)
{
    call(test, i, 0, RLR_STORE_LEAVE);
    start_host(test, i);
    test->hosts[i].config.members = 2;
}

static void hosts_of_another_configuration_are_refused_until_all_have_left(
    void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    change_host(&test, 0);
    change_host(&test, 1);
    pass(&test, 2000, 7);
    call(&test, 0, 0, 0);
    assert_int_equal(test.status, RLR_STORE_OTHER);
    change_host(&test, 2);
    call(&test, 0, 0, 0);
    assert_int_equal(test.status, RLR_STORE_OK);
    end(&test);
}

static void a_changed_configuration_admits_after_the_interval(void **state)
{
    case_t test;
    uint64_t until_ms;

    begin(&test);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    for (int i = 0; i < HOSTS; i++) {
        change_host(&test, i);
    }
    /* Its first call learns the time. */
    call(&test, 0, 0, 0);
    call(&test, 0, 0, 0);
    until_ms = test.now_ms + rlr_period_lease(nine.interval_sec)
        + nine.interval_sec * 1000;
    assert_int_equal(call(&test, 0, 1, 0), 0);
    assert_int_equal(test.wait_ms, until_ms - test.now_ms);
    while (test.now_ms < until_ms - 100) {
        pass(&test, 100, 3);
    }
    test.now_ms = until_ms - 1;
    assert_int_equal(call(&test, 0, 9, 0), 0);
    test.now_ms = until_ms;
    /* Nothing is reserved, although the second host is not there yet. */
    assert_int_equal(call(&test, 0, 9, 0), 9);
    end(&test);
}

/* Host 0 may admit the share of the number that host 1 has had after it. */
static void a_changed_configuration_waits_for_an_earlier_host(void **state)
{
    case_t test;

    replace_cut_off_host(&test);
    call(&test, 2, 0, RLR_STORE_LEAVE);
    change_host(&test, 1);
    assert_int_equal(local(&test, 0), 3);
    call(&test, 1, 0, 0);
    assert_int_equal(test.status, RLR_STORE_OTHER);
    test.now_ms += 200000;
    assert_int_equal(local(&test, 0), 0);
    call(&test, 1, 0, 0);
    assert_int_equal(test.status, RLR_STORE_OK);
    end(&test);
}

static void a_changed_configuration_waits_for_a_host_that_was_killed(
    void **state)
{
    case_t test;
    uint64_t killed_ms;

    begin(&test);
    killed_ms = test.now_ms;
    pass(&test, 2000, 6);
    call(&test, 2, 0, RLR_STORE_LEAVE);
    change_host(&test, 1);
    test.now_ms = killed_ms + 200000;
    call(&test, 1, 0, 0);
    assert_int_equal(test.status, RLR_STORE_OTHER);
    test.now_ms = killed_ms + 263000;
    call(&test, 1, 0, 0);
    assert_int_equal(test.status, RLR_STORE_OK);
    end(&test);
}

/* To the store they have all ended by then. */
static void a_clock_that_is_set_does_not_end_hosts_of_another_configuration(
    void **state)
{
    case_t test;

    begin(&test);
    change_host(&test, 0);
    change_host(&test, 1);
    pass(&test, 1000, 7);
    group_store_set_clock(test.store, 36000000);
    for (int i = 0; i < 20; i++) {
        test.now_ms++;
        call(&test, 0, 0, 0);
        assert_int_equal(test.status, RLR_STORE_OTHER);
    }
    start_host(&test, 1);
    test.hosts[1].config.members = 2;
    pass(&test, 1000, 7);
    call(&test, 2, 0, 0);
    assert_int_equal(test.status, RLR_STORE_OK);
    end(&test);
}

/* Its share of the other group is not a part of this one's limit. */
static void a_reload_with_another_configuration_ends_the_share(void **state)
{
    case_t test;

    begin(&test);
    pass(&test, 40000, 5);
    assert_int_equal(local(&test, 1), 3);
    test.hosts[1].config.members = 2;
    assert_int_equal(local(&test, 1), 0);
    test.hosts[1].config.members = 3;
    test.hosts[1].config.share_ms *= 2;
    assert_int_equal(local(&test, 1), 0);
    end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_number_is_reserved_while_its_earlier_host_may_use_it),
        CHECK_TEST(a_number_is_reserved_while_its_host_may_bring_it),
        CHECK_TEST(the_wait_is_true_while_a_share_is_reserved),
        CHECK_TEST(the_wait_is_true_while_an_admission_and_a_share_count),
        CHECK_TEST(the_wait_is_true_after_a_first_start),
        CHECK_TEST(the_share_of_a_host_that_has_left_is_not_reserved),
        CHECK_TEST(a_new_host_takes_the_number_of_one_that_has_left),
        CHECK_TEST(a_host_that_is_not_new_waits_for_the_number),
        CHECK_TEST(the_share_that_a_host_has_used_before_it_left_counts),
        CHECK_TEST(a_call_of_a_host_that_has_left_is_not_executed),
        CHECK_TEST(
            hosts_of_another_configuration_are_refused_until_all_have_left),
        CHECK_TEST(a_changed_configuration_admits_after_the_interval),
        CHECK_TEST(a_changed_configuration_waits_for_an_earlier_host),
        CHECK_TEST(a_changed_configuration_waits_for_a_host_that_was_killed),
        CHECK_TEST(
            a_clock_that_is_set_does_not_end_hosts_of_another_configuration),
        CHECK_TEST(a_reload_with_another_configuration_ends_the_share),
    };

    return CHECK_RUN(tests);
}
