/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/member.c */
/* OBJECTS: ../t/bench/group_store.c ../t/bench/group_marks.c */
/* OBJECTS: ../t/bench/group_epoch.c */
/* Hosts that return to a store that has kept running without them. */
#include "ratelimit_group_fixture.h"

static void stop_all(case_t *test)
{
    for (int i = 0; i < HOSTS; i++) {
        call(test, i, 0, RLR_MESSAGE_LEAVE);
        start_host(test, i);
    }
}

/* How long until one is granted, with all hosts connected. */
static uint64_t find_wait(case_t *test)
{
    uint64_t from_ms = test->now_ms;

    while (call(test, 0, 1, 0) < 1) {
        pass(test, 100, 7);
    }
    return test->now_ms - from_ms;
}

static void all_hosts_that_are_restarted_go_on_at_once(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(call(&test, 0, 5, 0), 5);
    stop_all(&test);
    test.now_ms += 3500;
    pass(&test, 200, 7);
    assert_int_equal(call(&test, 1, 9, 0), 4);
    end(&test);
}

static void old_reports_do_not_connect_a_host(void **state)
{
    case_t test;
    rlr_message_reply_t reply = {0};
    rlr_message_call_t report;

    begin(&test);
    group_store_empty(test.store);
    call(&test, 0, 0, 0);
    rlr_member_fill(&report, &test.hosts[0].member, &test.hosts[0].config,
                    RLR_MESSAGE_REPORT, test.now_ms);
    report.latest_ms = test.now_ms + 1000000 + 10500;
    pass(&test, 5000, 7);
    assert_int_equal(call(&test, 0, 5, 0), 5);
    stop_all(&test);
    for (int i = 0; i < 5; i++) {
        test.now_ms += 1000;
        group_store_call(test.store, test.now_ms * 1000, &report, &reply);
        assert_int_equal(reply.status,
                         i < 3 ? RLR_MESSAGE_OK : RLR_MESSAGE_LATE);
    }
    assert_in_range(find_wait(&test), 4000, 4600);
    end(&test);
}

static void all_hosts_wait_after_a_longer_time_without_any(void **state)
{
    case_t test;

    begin(&test);
    stop_all(&test);
    test.now_ms += 10500;
    assert_in_range(find_wait(&test), 10100, 10600);
    end(&test);
}

static void a_rule_of_a_longer_interval_goes_on(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(call(&test, 0, 5, 0), 5);
    stop_all(&test);
    test.now_ms += 4500;
    pass(&test, 100, 7);
    pass(&test, 4400, 7);
    assert_int_equal(call(&test, 1, 9, 0), 4);
    end(&test);
}

static void a_rule_that_was_not_granted_before_waits(void **state)
{
    case_t test;

    prepare(&test);
    pass(&test, 6000, 7);
    stop_all(&test);
    test.now_ms += 4500;
    assert_in_range(find_wait(&test), 10100, 10600);
    end(&test);
}

static void a_rule_that_waits_twice_is_not_forgotten(void **state)
{
    case_t test;

    begin(&test);
    test.limit = (rlr_limit_t){9, 60};
    pass(&test, 60000, 7);
    assert_int_equal(call(&test, 0, 5, 0), 5);
    for (int i = 0; i < 2; i++) {
        stop_all(&test);
        test.now_ms += 8000;
        pass(&test, 2000, 7);
    }
    pass(&test, 4400, 7);
    assert_int_equal(call(&test, 1, 9, 0), 4);
    end(&test);
}

/* The other store has waited for as long as this one had no host, but by a
 * faster clock. */
static void a_rule_that_another_store_has_granted_waits(void **state)
{
    static const uint64_t hour_ms = 3600000;
    group_store_t *former;
    case_t test;

    begin(&test);
    test.limit = (rlr_limit_t){9, 3600};
    pass(&test, hour_ms, 7);
    stop_all(&test);
    former = test.store;
    test.store = group_store_make(2, 1000000);
    group_store_set_rate(test.store, 1 + 1 / 513.0);
    find_wait(&test);
    stop_all(&test);
    group_store_drop(test.store);
    test.store = former;
    assert_in_range(find_wait(&test), hour_ms, hour_ms + 10000);
    end(&test);
}

/* The first store has been returned to since: of the admissions that the other
 * one has granted in between it knows none, also after a second restart. */
static void a_second_restart_does_not_forget_another_store(void **state)
{
    group_store_t *first;
    uint64_t granted_ms;
    case_t test;

    begin(&test);
    test.limit = (rlr_limit_t){9, 20};
    pass(&test, 100000, 7);
    stop_all(&test);
    first = test.store;
    test.store = group_store_make(2, 1000000);
    pass(&test, 26000, 7);
    assert_int_equal(call(&test, 0, 9, 0), 9);
    granted_ms = test.now_ms;
    stop_all(&test);
    group_store_drop(test.store);
    test.store = first;
    pass(&test, 4400, 7);
    stop_all(&test);
    test.now_ms += 4100;
    find_wait(&test);
    assert_in_range(test.now_ms, granted_ms + 20000, granted_ms + 40000);
    end(&test);
}

/* No mark of the store has the admissions of shares. */
static void shares_are_not_forgotten_by_a_second_restart(void **state)
{
    case_t test;
    uint64_t used_ms;

    begin(&test);
    test.limit = (rlr_limit_t){9, 20};
    stop_all(&test);
    test.now_ms += 4500;
    pass(&test, 9000, 7);
    test.now_ms += 26500;
    for (int i = 0; i < HOSTS; i++) {
        assert_int_equal(local(&test, i), 3);
        rlr_member_use_share(&test.hosts[i].member, 20, test.now_ms);
    }
    used_ms = test.now_ms;
    pass(&test, 500, 7);
    stop_all(&test);
    test.now_ms += 4100;
    find_wait(&test);
    assert_in_range(test.now_ms, used_ms + 20000, used_ms + 30000);
    end(&test);
}

static void hosts_that_were_cut_off_together_go_on_at_once(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(call(&test, 0, 5, 0), 5);
    test.now_ms += 9000;
    pass(&test, 200, 7);
    assert_int_equal(call(&test, 1, 9, 0), 4);
    end(&test);
}

/* The other two may be connected to another store. */
static void the_shares_of_those_that_do_not_return_are_reserved(void **state)
{
    case_t test;

    begin(&test);
    test.now_ms += 190000;
    pass(&test, 20000, 1);
    assert_int_equal(call(&test, 0, 9, 0), 3);
    pass(&test, 260000, 1);
    assert_int_equal(call(&test, 0, 9, 0), 3);
    pass(&test, 80000, 1);
    assert_int_equal(call(&test, 0, 9, 0), 9);
    end(&test);
}

/* Hosts 1 and 2 are connected to another store for that time, host 0 to none
 * then. Returns how many of 9 that store grants at the end; the former one is
 * the store of the test again. */
static uint32_t leave_behind(case_t *test, uint64_t ms)
{
    group_store_t *former = test->store;
    uint32_t granted;

    test->store = group_store_make(2, 1000000);
    pass(test, ms, 6);
    granted = call(test, 1, 9, 0);
    group_store_drop(test->store);
    test->store = former;
    return granted;
}

static void a_host_that_returns_first_has_its_share(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(leave_behind(&test, 190000), 6);
    pass(&test, 200, 1);
    assert_int_equal(call(&test, 0, 9, 0), 3);
    end(&test);
}

/* The others are still at the other store, and are granted all there. */
static void a_host_that_returns_first_after_a_long_time_has_none(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(leave_behind(&test, 350000), 9);
    pass(&test, 200, 1);
    assert_int_equal(call(&test, 0, 9, 0), 0);
    end(&test);
}

/* Host 0 stays at the first store, is cut off, and brings its number to a third
 * one while the others are at the second. */
static void a_number_may_come_from_the_former_store(void **state)
{
    case_t test;
    group_store_t *first;
    group_store_t *second = group_store_make(2, 1000000);

    begin(&test);
    first = test.store;
    for (int sec = 0; sec < 292; sec++) {
        if (sec == 240) {
            group_store_drop(first);
            first = group_store_make(3, 1000000);
        }
        test.store = second;
        pass(&test, 900, 6);
        test.store = first;
        pass(&test, 100, sec < 55 || sec >= 240);
    }
    assert_int_equal(call(&test, 0, 9, 0), 3);
    test.store = second;
    assert_int_equal(call(&test, 1, 9, 0), 6);
    group_store_drop(first);
    end(&test);
}

/* It brings what it knows, as if the data were lost. */
static void a_host_that_was_elsewhere_begins_another_epoch(void **state)
{
    case_t test;
    group_store_t *former;

    begin(&test);
    former = test.store;
    test.store = group_store_make(2, 1000000);
    pass(&test, 400000, 7);
    assert_int_equal(call(&test, 2, 9, 0), 9);
    group_store_drop(test.store);
    test.store = former;
    pass(&test, 8000, 1);
    assert_int_equal(call(&test, 0, 9, 0), 0);
    pass(&test, 20000, 7);
    assert_int_equal(call(&test, 0, 9, 0), 9);
    end(&test);
}

/* All hosts were killed: those that are started are all that run. */
static void hosts_that_are_started_after_all_were_killed_wait_for_the_interval(
    void **state)
{
    case_t test;

    begin(&test);
    for (int i = 0; i < HOSTS; i++) {
        start_host(&test, i);
    }
    test.now_ms += 5000;
    assert_in_range(find_wait(&test), 10100, 10600);
    end(&test);
}

/* The server has another id, with the data of before: a reboot. */
static void store_and_hosts_that_start_again_wait_for_the_interval(void **state)
{
    case_t test;

    for (int is_killed = 0; is_killed < 2; is_killed++) {
        begin(&test);
        for (int i = 0; i < HOSTS; i++) {
            if (!is_killed) {
                call(&test, i, 0, RLR_MESSAGE_LEAVE);
            }
            start_host(&test, i);
        }
        group_store_restart(test.store, 2);
        test.now_ms += 5000;
        assert_in_range(find_wait(&test), 10100, 10600);
        end(&test);
    }
}

/* With a heartbeat of a host that shuts down. */
static void close_lease(case_t *test, int i)
{
    rlr_message_item_t item = {.limit = {9, 10}, .closed_tag = 1};
    rlr_message_grant_t grant = {0};
    rlr_message_reply_t reply = {.grants = &grant};
    rlr_message_call_t sent;

    rlr_member_fill(&sent, &test->hosts[i].member, &test->hosts[i].config,
                    RLR_MESSAGE_HEARTBEAT, test->now_ms);
    sent.flags |= RLR_MESSAGE_LEAVE;
    sent.items = &item;
    sent.item_count = 1;
    group_store_call(test->store, test->now_ms * 1000, &sent, &reply);
    assert_int_equal(reply.status, RLR_MESSAGE_OK);
}

static void a_host_that_was_refused_for_its_configuration_leaves(void **state)
{
    case_t test;
    rlr_member_t stopped;

    begin(&test);
    for (int i = 0; i < HOSTS; i++) {
        test.hosts[i].config.members = 2;
    }
    pass(&test, 60000, 7);
    assert_int_equal(test.status, RLR_MESSAGE_OTHER);
    for (int i = 0; i < HOSTS; i++) {
        rlr_member_leave(&test.hosts[i].member, &stopped);
        assert_true(stopped.is_confirmed);
        test.hosts[i].member = stopped;
        test.hosts[i].config.members = stopped.members;
        call(&test, i, 0, RLR_MESSAGE_LEAVE);
        close_lease(&test, i);
        call(&test, i, 0, RLR_MESSAGE_LEAVE);
        assert_int_equal(test.status, RLR_MESSAGE_OK);
        start_host(&test, i);
        test.hosts[i].config.members = 2;
        test.now_ms += 5000;
    }
    pass(&test, 12000, 3);
    assert_int_equal(call(&test, 0, 9, 0), 9);
    end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(all_hosts_that_are_restarted_go_on_at_once),
        CHECK_TEST(old_reports_do_not_connect_a_host),
        CHECK_TEST(all_hosts_wait_after_a_longer_time_without_any),
        CHECK_TEST(a_rule_of_a_longer_interval_goes_on),
        CHECK_TEST(a_rule_that_was_not_granted_before_waits),
        CHECK_TEST(a_rule_that_waits_twice_is_not_forgotten),
        CHECK_TEST(a_rule_that_another_store_has_granted_waits),
        CHECK_TEST(a_second_restart_does_not_forget_another_store),
        CHECK_TEST(shares_are_not_forgotten_by_a_second_restart),
        CHECK_TEST(hosts_that_were_cut_off_together_go_on_at_once),
        CHECK_TEST(the_shares_of_those_that_do_not_return_are_reserved),
        CHECK_TEST(a_host_that_returns_first_has_its_share),
        CHECK_TEST(a_host_that_returns_first_after_a_long_time_has_none),
        CHECK_TEST(a_number_may_come_from_the_former_store),
        CHECK_TEST(a_host_that_was_elsewhere_begins_another_epoch),
        CHECK_TEST(
            hosts_that_are_started_after_all_were_killed_wait_for_the_interval),
        CHECK_TEST(store_and_hosts_that_start_again_wait_for_the_interval),
        CHECK_TEST(a_host_that_was_refused_for_its_configuration_leaves),
    };

    return CHECK_RUN(tests);
}
