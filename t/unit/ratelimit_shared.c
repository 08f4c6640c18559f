/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/ */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* Memberships in shared memory, its layout, and the numbers of operators. */
#include "check.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../mod_ratelimit_regional/counter/header.h"
#include "ratelimit_shared.h"

static void memory_of_another_layout_is_not_used(void **state)
{
    rlr_shared_t found;
    case_t test;
    uint32_t *words;

    begin(&test, 16);
    assert_true(rlr_shared_attach(&found, test.memory, test.size));
    assert_memory_equal(rlr_shared_id(&found), id, sizeof(id));
    assert_true(grant(&test, 1, 1, 1000));
    test.shared = found;
    assert_int_equal(report(&test, 1000), 1);
    assert_false(rlr_shared_attach(&found, test.memory, test.size - 1));
    words = test.memory;
    /* The parts of rlr_header_t. */
    for (uint32_t i = 0; i < sizeof(rlr_header_t) / sizeof(*words); i++) {
        words[i]++;
        assert_false(rlr_shared_attach(&found, test.memory, test.size));
        words[i]--;
    }
    assert_true(rlr_shared_attach(&found, test.memory, test.size));
    end(&test);
}

/* Sets the state of a partition; heartbeat_until_ms 0: never connected. */
static void set_partition(case_t *test, uint32_t partition,
                          uint64_t heartbeat_until_ms, uint32_t missing,
                          uint32_t reserved)
{
    rlr_partition_state_t *state = rlr_shared_lock(&test->shared, partition,
                                                   1000);

    state->member.was_member = heartbeat_until_ms > 0;
    state->member.is_confirmed = heartbeat_until_ms > 0;
    state->member.heartbeat_until_ms = heartbeat_until_ms;
    state->group.missing = missing;
    state->group.reserved = reserved;
    rlr_shared_unlock(&test->shared, partition);
}

static void operators_see_the_worst_of_all_partitions(void **state)
{
    rlr_shared_summary_t summary;
    rlr_partition_state_t *partition;
    case_t test;

    begin(&test, 16);
    set_partition(&test, 0, 5000, 1, 0);
    set_partition(&test, 1, 3000, 1, 2);
    set_partition(&test, 2, 5000, 0, 0);
    /* A partition that the host is not a member of tells nothing. */
    set_partition(&test, 3, 0, 3, 3);
    rlr_shared_sum_up(&summary, &test.shared, true, 3000);
    assert_int_equal(summary.members, 3);
    assert_int_equal(summary.connected, 2);
    assert_int_equal(summary.starting, RLR_SHARED_PARTITIONS - 3);
    assert_int_equal(summary.group.missing, 1);
    assert_int_equal(summary.group.reserved, 2);
    assert_false(summary.is_refused);
    partition = rlr_shared_lock(&test.shared, 5, 3000);
    partition->status = RLR_MESSAGE_FULL;
    rlr_shared_unlock(&test.shared, 5);
    rlr_shared_sum_up(&summary, &test.shared, true, 3000);
    assert_true(summary.is_refused);
    end(&test);
}

static void a_partition_that_is_locked_is_left_out_without_a_wait(void **state)
{
    rlr_shared_summary_t summary;
    case_t test;

    begin(&test, 16);
    set_partition(&test, 0, 5000, 1, 0);
    set_partition(&test, 1, 5000, 1, 0);
    assert_non_null(rlr_shared_try_lock(&test.shared, 1, 3000));
    assert_null(rlr_shared_try_lock(&test.shared, 1, 3000));
    rlr_shared_sum_up(&summary, &test.shared, false, 3000);
    assert_int_equal(summary.connected, 1);
    rlr_shared_unlock(&test.shared, 1);
    rlr_shared_sum_up(&summary, &test.shared, false, 3000);
    assert_int_equal(summary.connected, 2);
    end(&test);
}

static void a_lost_mark_is_remembered_until_it_expires(void **state)
{
    case_t test;
    const rlr_partition_state_t *partition;

    begin(&test, 16);
    rlr_shared_record_loss(&test.shared, 3, 5000);
    rlr_shared_record_loss(&test.shared, 3, 4000);
    partition = rlr_shared_lock(&test.shared, 3, 1000);
    assert_int_equal(partition->member.lost_until_ms, 5000);
    rlr_shared_unlock(&test.shared, 3);
    end(&test);
}

static void a_process_that_dies_with_the_lock_of_a_partition(void **state)
{
    case_t test;
    const rlr_partition_state_t *partition;
    pid_t pid;

    begin(&test, 16);
    assert_true(grant(&test, 1, 1, 1000));
    pid = fork();
    if (pid == 0) {
        rlr_shared_lock(&test.shared, 0, 1000);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    partition = rlr_shared_lock(&test.shared, 0, 2000);
    assert_non_null(partition);
    assert_int_equal(partition->member.number, RLR_MESSAGE_NO_NUMBER);
    assert_true(partition->member.was_member);
    assert_true(partition->member.has_used_share);
    /* The longest interval that has been in use. */
    assert_in_range(partition->member.lost_until_ms, 12000, 20000);
    rlr_shared_unlock(&test.shared, 0);
    end(&test);
}

/* The share of a partition has been used, and counts until 30000. */
static void use_share(case_t *test, uint32_t partition)
{
    rlr_partition_state_t *state = rlr_shared_lock(&test->shared, partition,
                                                   1000);

    state->member.share_until_ms = 30000;
    rlr_shared_unlock(&test->shared, partition);
}

static void another_table_has_the_share_after_the_former_one(void **state)
{
    rlr_shared_t next;
    const rlr_partition_state_t *partition;
    case_t test;

    begin(&test, 16);
    use_share(&test, 3);
    assert_true(rlr_shared_attach(&next, test.memory, test.size));
    assert_true(rlr_shared_has_table(&next));
    rlr_shared_change_table(&next);
    assert_true(rlr_shared_has_table(&next));
    assert_false(rlr_shared_has_table(&test.shared));
    partition = rlr_shared_lock(&next, 3, 2000);
    assert_int_equal(partition->member.share_from_ms, 30000);
    rlr_shared_unlock(&next, 3);
    partition = rlr_shared_lock(&next, 4, 2000);
    assert_int_equal(partition->member.share_from_ms, 0);
    rlr_shared_unlock(&next, 4);
    end(&test);
}

static void a_warning_is_due_once_a_minute(void **state)
{
    case_t test;

    begin(&test, 16);
    assert_true(rlr_shared_is_due(&test.shared, RLR_SHARED_AWAY, 1000));
    assert_false(rlr_shared_is_due(&test.shared, RLR_SHARED_AWAY, 60999));
    assert_true(rlr_shared_is_due(&test.shared, RLR_SHARED_AWAY, 61000));
    assert_true(rlr_shared_is_due(&test.shared, RLR_SHARED_LATE, 61001));
    end(&test);
}

static void the_last_configuration_sends_its_rules_at_once(void **state)
{
    rlr_shared_t next;
    case_t test;

    begin(&test, 16);
    assert_true(rlr_shared_is_due(&test.shared, RLR_SHARED_RULES, 1000));
    assert_false(rlr_shared_is_due(&test.shared, RLR_SHARED_RULES, 1001));
    assert_true(rlr_shared_attach(&next, test.memory, test.size));
    assert_false(rlr_shared_is_due(&test.shared, RLR_SHARED_RULES, 1002));
    assert_true(rlr_shared_is_due(&next, RLR_SHARED_RULES, 1002));
    assert_false(rlr_shared_is_due(&test.shared, RLR_SHARED_RULES, 90000));
    end(&test);
}

static void requests_are_counted_by_region(void **state)
{
    rlr_stats_t *stats;
    rlr_stats_region_t *regions[RLR_STATS_REGIONS + 1];
    case_t test;

    begin(&test, 16);
    stats = rlr_shared_stats(&test.shared);
    for (uint32_t i = 0; i <= RLR_STATS_REGIONS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "region%u", (unsigned)i);
        regions[i] = rlr_stats_find(stats, name);
        assert_ptr_equal(rlr_stats_find(stats, name), regions[i]);
        rlr_stats_request(regions[i], RLR_STATS_ASKED);
    }
    /* One too many. */
    assert_ptr_equal(regions[RLR_STATS_REGIONS],
                     regions[RLR_STATS_REGIONS - 1]);
    assert_ptr_not_equal(regions[0], regions[1]);
    assert_int_equal(regions[1]->requests[RLR_STATS_ASKED], 1);
    assert_int_equal(rlr_stats_sum(stats, RLR_STATS_ASKED),
                     RLR_STATS_REGIONS + 1);
    assert_int_equal(rlr_stats_sum(stats, RLR_STATS_LATE), 0);
    end(&test);
}

static void round_trips_are_counted_by_duration(void **state)
{
    rlr_stats_t *stats;
    case_t test;

    begin(&test, 16);
    stats = rlr_shared_stats(&test.shared);
    rlr_stats_round(stats, 1000, false);
    rlr_stats_round(stats, 1001, false);
    rlr_stats_round(stats, 600000, true);
    assert_int_equal(stats->rounds[0], 1);
    assert_int_equal(stats->rounds[1], 1);
    assert_int_equal(stats->rounds[RLR_STATS_BOUNDS], 1);
    assert_int_equal(rlr_stats_rounds(stats), 3);
    assert_int_equal(stats->round_us, 602001);
    assert_int_equal(rlr_stats_recent_us(stats), 0);
    rlr_stats_trip(stats, 1000);
    assert_int_equal(rlr_stats_recent_us(stats), 1000);
    assert_int_equal(rlr_stats_advise(stats, 2), 0);
    assert_int_equal(rlr_stats_advise(stats, 1), 4);
    for (int i = 0; i < 100; i++) {
        rlr_stats_trip(stats, 4000);
    }
    assert_in_range(rlr_stats_recent_us(stats), 3900, 4000);
    assert_in_range(rlr_stats_advise(stats, 5), 12, 13);
    assert_in_range(rlr_stats_advise(stats, 7), 12, 13);
    assert_int_equal(rlr_stats_advise(stats, 13), 0);
    assert_int_equal(stats->errors, 1);
    end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(memory_of_another_layout_is_not_used),
        CHECK_TEST(operators_see_the_worst_of_all_partitions),
        CHECK_TEST(a_partition_that_is_locked_is_left_out_without_a_wait),
        CHECK_TEST(a_lost_mark_is_remembered_until_it_expires),
        CHECK_TEST(a_process_that_dies_with_the_lock_of_a_partition),
        CHECK_TEST(another_table_has_the_share_after_the_former_one),
        CHECK_TEST(a_warning_is_due_once_a_minute),
        CHECK_TEST(the_last_configuration_sends_its_rules_at_once),
        CHECK_TEST(requests_are_counted_by_region),
        CHECK_TEST(round_trips_are_counted_by_duration),
    };

    return CHECK_RUN(tests);
}
