/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../t/bench/group_epoch.c */
/* OBJECTS: ../mod_ratelimit_regional/protocol/member.c */
/* OBJECTS: ../t/bench/group_store.c ../t/bench/group_marks.c */
/* One epoch after another: other configurations, failovers, another clock. */
#include "ratelimit_group_fixture.h"

/* Host i leaves; another one is started in a group of two hosts. */
static void change_host(case_t *test, int i)
{
    call(test, i, 0, RLR_MESSAGE_LEAVE);
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
    assert_int_equal(test.status, RLR_MESSAGE_OTHER);
    change_host(&test, 2);
    call(&test, 0, 0, 0);
    assert_int_equal(test.status, RLR_MESSAGE_OK);
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

    begin(&test);
    pass(&test, 277000, 5);
    start_host(&test, 1);
    pass(&test, 61000, 4);
    pass(&test, 80000, 6);
    assert_int_equal(test.hosts[1].member.number, 0);
    call(&test, 2, 0, RLR_MESSAGE_LEAVE);
    change_host(&test, 1);
    assert_int_equal(local(&test, 0), 3);
    call(&test, 1, 0, 0);
    assert_int_equal(test.status, RLR_MESSAGE_OTHER);
    test.now_ms += 200000;
    assert_int_equal(local(&test, 0), 0);
    call(&test, 1, 0, 0);
    assert_int_equal(test.status, RLR_MESSAGE_OK);
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
    call(&test, 2, 0, RLR_MESSAGE_LEAVE);
    change_host(&test, 1);
    test.now_ms = killed_ms + 200000;
    call(&test, 1, 0, 0);
    assert_int_equal(test.status, RLR_MESSAGE_OTHER);
    test.now_ms = killed_ms + 263000;
    call(&test, 1, 0, 0);
    assert_int_equal(test.status, RLR_MESSAGE_OK);
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
        assert_int_not_equal(test.status, RLR_MESSAGE_OK);
    }
    start_host(&test, 1);
    test.hosts[1].config.members = 2;
    pass(&test, 1000, 7);
    call(&test, 2, 0, 0);
    assert_int_equal(test.status, RLR_MESSAGE_OK);
    end(&test);
}

/* How long until the store grants all N, with all hosts connected. */
static uint64_t find_wait(case_t *test)
{
    uint64_t from_ms = test->now_ms;

    while (call(test, 0, 9, 0) < 9) {
        pass(test, 100, 7);
    }
    return test->now_ms - from_ms;
}

static void hosts_continue_after_two_failovers_as_after_one(void **state)
{
    case_t test;

    begin(&test);
    group_store_restart(test.store, 2);
    assert_in_range(find_wait(&test), 4000, 5000);
    pass(&test, 20000, 7);
    group_store_restart(test.store, 3);
    pass(&test, 2000, 7);
    group_store_restart(test.store, 4);
    pass(&test, 2000, 7);
    group_store_restart(test.store, 5);
    assert_in_range(find_wait(&test), 4000, 5000);
    end(&test);
}

/* In between it was in an epoch that was never complete. */
static void a_share_that_was_used_between_failovers_is_reserved(void **state)
{
    case_t test;
    uint64_t used_ms;
    uint32_t granted = 0;

    begin(&test);
    group_store_restart(test.store, 2);
    pass(&test, 2000, 7);
    pass(&test, 20000, 6);
    assert_int_equal(local(&test, 0), 3);
    rlr_member_use_share(&test.hosts[0].member, nine.interval_sec, test.now_ms);
    used_ms = test.now_ms;
    pass(&test, 1000, 7);
    group_store_restart(test.store, 3);
    while (test.now_ms < used_ms + nine.interval_sec * 1000) {
        pass(&test, 100, 7);
        granted += call(&test, 1, 9, 0);
    }
    assert_in_range(granted, 0, 6);
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
        CHECK_TEST(
            hosts_of_another_configuration_are_refused_until_all_have_left),
        CHECK_TEST(a_changed_configuration_admits_after_the_interval),
        CHECK_TEST(a_changed_configuration_waits_for_an_earlier_host),
        CHECK_TEST(a_changed_configuration_waits_for_a_host_that_was_killed),
        CHECK_TEST(
            a_clock_that_is_set_does_not_end_hosts_of_another_configuration),
        CHECK_TEST(hosts_continue_after_two_failovers_as_after_one),
        CHECK_TEST(a_share_that_was_used_between_failovers_is_reserved),
        CHECK_TEST(a_reload_with_another_configuration_ends_the_share),
    };

    return CHECK_RUN(tests);
}
