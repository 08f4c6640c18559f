/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/group/ */
/* Memberships and leases in shared memory. */
#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../mod_ratelimit_regional/group/ledger.h"

static const unsigned char id[RLR_STORE_ID_BYTES] = {9, 8, 7};
static const rlr_limit_t ten = {10, 10};

typedef struct case_t {
    rlr_ledger_t ledger;
    void *memory;
    size_t size;
} case_t;

static void begin(case_t *test, uint32_t keys)
{
    test->size = rlr_ledger_size(keys);
    test->memory = mmap(NULL, test->size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(rlr_ledger_create(&test->ledger, test->memory, keys, id));
}

static void end(case_t *test)
{
    munmap(test->memory, test->size);
}

static void make_key(unsigned char *key, uint32_t number)
{
    memset(key, 0, RLR_STORE_KEY_BYTES);
    memcpy(key + 8, &number, sizeof(number));
}

/* Grants `amount` to a key, which is in partition 0. False: no lease. */
static bool grant(case_t *test, uint32_t number, uint32_t amount,
                  uint64_t now_ms)
{
    unsigned char key[RLR_STORE_KEY_BYTES];
    rlr_store_grant_t granted = {amount, 0, 0, 0};
    rlr_store_item_t item;
    rlr_lease_t *lease;

    make_key(key, number);
    lease = rlr_ledger_lock_lease(&test->ledger, key, ten, now_ms);
    if (lease == NULL) {
        return false;
    }
    rlr_lease_request(&item, lease, amount, 1, now_ms);
    assert_int_equal(rlr_lease_grant(lease, &item, &granted, now_ms, now_ms),
                     amount);
    rlr_ledger_unlock_lease(&test->ledger, key);
    return true;
}

/* The sum of all marks of partition 0. */
static uint32_t report(case_t *test, uint64_t now_ms)
{
    rlr_store_mark_t marks[8 * RLR_LEASE_MARKS];
    uint32_t cursor = 0;
    uint32_t sum = 0;
    uint32_t count;

    do {
        count = rlr_ledger_report(marks, 8 * RLR_LEASE_MARKS, &cursor,
                                  &test->ledger, 0, now_ms);
        for (uint32_t i = 0; i < count; i++) {
            sum += marks[i].amount;
        }
    } while (count > 0);
    return sum;
}

static void all_marks_of_a_partition_are_reported(void **state)
{
    case_t test;
    uint32_t granted = 0;

    begin(&test, 4096);
    for (uint32_t i = 0; i < 8; i++) {
        granted += grant(&test, i, 2, 1000) ? 2 : 0;
    }
    assert_int_equal(granted, 16);
    assert_int_equal(report(&test, 1000), 16);
    assert_int_equal(report(&test, 20000), 0);
    end(&test);
}

static void all_leases_of_a_partition_are_returned(void **state)
{
    static const rlr_limit_t large = {6400, 10};
    case_t test;
    uint32_t cursor = 0;
    uint32_t closed = 0;
    uint32_t count;

    begin(&test, 4096);
    for (uint32_t i = 0; i < 40; i++) {
        unsigned char key[RLR_STORE_KEY_BYTES];
        rlr_store_grant_t granted = {9, 0, 0, 0};
        rlr_store_item_t item;
        rlr_lease_t *lease;

        make_key(key, i);
        memcpy(key + 4, &i, sizeof(i));
        lease = rlr_ledger_lock_lease(&test.ledger, key, large, 1000);
        rlr_lease_request(&item, lease, 1, i + 1, 1000);
        rlr_lease_grant(lease, &item, &granted, 1000, 1000);
        rlr_ledger_unlock_lease(&test.ledger, key);
    }
    do {
        rlr_store_item_t items[8 * RLR_LEASE_CLOSINGS];

        count = rlr_ledger_close(items, 8 * RLR_LEASE_CLOSINGS, &cursor,
                                 &test.ledger, 0, 1001);
        closed += count;
    } while (count > 0);
    assert_int_equal(closed, 40);
    end(&test);
}

static void a_lease_that_counts_is_not_replaced(void **state)
{
    case_t test;

    begin(&test, 16);
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(grant(&test, i, 1, 1000));
    }
    assert_false(grant(&test, 100, 1, 1000));
    assert_int_equal(report(&test, 1000), 8);
    /* They have expired. */
    assert_true(grant(&test, 100, 1, 30000));
    end(&test);
}

static void a_lease_with_a_cached_refusal_is_not_replaced(void **state)
{
    static const rlr_store_grant_t none = {0, 700, 0, 0};
    unsigned char key[RLR_STORE_KEY_BYTES];
    rlr_store_item_t item;
    rlr_lease_t *lease;
    case_t test;

    begin(&test, 16);
    for (uint32_t i = 0; i < 8; i++) {
        make_key(key, i);
        lease = rlr_ledger_lock_lease(&test.ledger, key, ten, 1000);
        rlr_lease_request(&item, lease, 1, 1, 1000);
        rlr_lease_grant(lease, &item, &none, 1000, 1000);
        rlr_ledger_unlock_lease(&test.ledger, key);
    }
    assert_false(grant(&test, 100, 1, 1699));
    assert_true(grant(&test, 100, 1, 1700));
    end(&test);
}

static void a_key_with_another_limit_has_no_lease_of_the_old_one(void **state)
{
    static const rlr_limit_t twenty = {20, 10};
    unsigned char key[RLR_STORE_KEY_BYTES];
    const rlr_lease_t *lease;
    case_t test;

    begin(&test, 16);
    assert_true(grant(&test, 1, 1, 1000));
    make_key(key, 1);
    lease = rlr_ledger_lock_lease(&test.ledger, key, twenty, 1001);
    assert_true(rlr_limit_equal(lease->limit, twenty));
    rlr_ledger_unlock_lease(&test.ledger, key);
    assert_int_equal(report(&test, 1001), 1);
    end(&test);
}

static void one_thread_requests_more_of_a_key_for_all(void **state)
{
    unsigned char key[RLR_STORE_KEY_BYTES];
    rlr_lease_t *lease;
    case_t test;

    begin(&test, 16);
    make_key(key, 1);
    lease = rlr_ledger_lock_lease(&test.ledger, key, ten, 1000);
    assert_true(rlr_ledger_may_request(lease, 1000));
    assert_false(rlr_ledger_may_request(lease, 1019));
    assert_true(rlr_ledger_may_request(lease, 1020));
    rlr_ledger_unlock_lease(&test.ledger, key);
    end(&test);
}

/* Sets the state of a partition; heartbeat_until_ms 0: never connected. */
static void set_partition(case_t *test, uint32_t partition,
                          uint64_t heartbeat_until_ms, uint32_t missing,
                          uint32_t reserved)
{
    rlr_ledger_state_t *state = rlr_ledger_lock(&test->ledger, partition, 1000);

    state->member.was_member = heartbeat_until_ms > 0;
    state->member.is_confirmed = heartbeat_until_ms > 0;
    state->member.heartbeat_until_ms = heartbeat_until_ms;
    state->absent.missing = missing;
    state->absent.reserved = reserved;
    rlr_ledger_unlock(&test->ledger, partition);
}

static void operators_see_the_worst_of_all_partitions(void **state)
{
    rlr_ledger_summary_t summary;
    rlr_ledger_state_t *partition;
    case_t test;

    begin(&test, 16);
    set_partition(&test, 0, 5000, 1, 0);
    set_partition(&test, 1, 3000, 1, 2);
    set_partition(&test, 2, 5000, 0, 0);
    /* A partition that the host is not a member of tells nothing. */
    set_partition(&test, 3, 0, 3, 3);
    rlr_ledger_sum_up(&summary, &test.ledger, 3000);
    assert_int_equal(summary.members, 3);
    assert_int_equal(summary.connected, 2);
    assert_int_equal(summary.starting, RLR_LEDGER_PARTITIONS - 3);
    assert_int_equal(summary.absent.missing, 1);
    assert_int_equal(summary.absent.reserved, 2);
    assert_false(summary.is_refused);
    partition = rlr_ledger_lock(&test.ledger, 5, 3000);
    partition->status = RLR_STORE_FULL;
    rlr_ledger_unlock(&test.ledger, 5);
    rlr_ledger_sum_up(&summary, &test.ledger, 3000);
    assert_true(summary.is_refused);
    end(&test);
}

static void a_lost_mark_is_remembered_until_it_expires(void **state)
{
    case_t test;
    const rlr_ledger_state_t *partition;

    begin(&test, 16);
    rlr_ledger_lose(&test.ledger, 3, 5000);
    rlr_ledger_lose(&test.ledger, 3, 4000);
    partition = rlr_ledger_lock(&test.ledger, 3, 1000);
    assert_int_equal(partition->member.lost_until_ms, 5000);
    rlr_ledger_unlock(&test.ledger, 3);
    end(&test);
}

static void a_process_that_dies_with_the_lock_of_a_partition(void **state)
{
    case_t test;
    const rlr_ledger_state_t *partition;
    pid_t pid;

    begin(&test, 16);
    pid = fork();
    if (pid == 0) {
        rlr_ledger_lock(&test.ledger, 0, 1000);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    partition = rlr_ledger_lock(&test.ledger, 0, 2000);
    assert_non_null(partition);
    assert_int_equal(partition->member.number, RLR_STORE_NO_NUMBER);
    assert_true(partition->member.was_member);
    assert_true(partition->member.has_used_share);
    assert_true(partition->member.lost_until_ms > 2000);
    rlr_ledger_unlock(&test.ledger, 0);
    end(&test);
}

/* Locks the lease of key 1 in another process, which keeps it until *end is
 * closed, or this one exits. */
static pid_t hold_lease(case_t *test, int *end)
{
    int ready[2];
    int held[2];
    char byte = 0;
    pid_t pid;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(held, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        unsigned char key[RLR_STORE_KEY_BYTES];

        close(held[1]);
        make_key(key, 1);
        rlr_ledger_lock_lease(&test->ledger, key, ten, 1000);
        _exit(write(ready[1], &byte, 1) == 1 && read(held[0], &byte, 1) == 0
                  ? 0
                  : 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    close(held[0]);
    *end = held[1];
    return pid;
}

static void marks_that_cannot_be_read_are_lost(void **state)
{
    const rlr_ledger_state_t *partition;
    case_t test;
    pid_t pid;
    int held;

#if defined(__SANITIZE_THREAD__)
    /* Locks are waited for without an end there. */
    skip();
#endif
    begin(&test, 16);
    assert_true(grant(&test, 1, 1, 1000));
    pid = hold_lease(&test, &held);
    assert_int_equal(report(&test, 2000), 0);
    partition = rlr_ledger_lock(&test.ledger, 0, 2000);
    assert_true(partition->member.lost_until_ms > 2000);
    rlr_ledger_unlock(&test.ledger, 0);
    close(held);
    waitpid(pid, NULL, 0);
    end(&test);
}

static void a_process_that_dies_with_the_lock_of_a_lease(void **state)
{
    case_t test;
    const rlr_ledger_state_t *partition;
    pid_t pid;

    begin(&test, 16);
    grant(&test, 1, 1, 1000);
    pid = fork();
    if (pid == 0) {
        unsigned char key[RLR_STORE_KEY_BYTES];

        make_key(key, 1);
        rlr_ledger_lock_lease(&test.ledger, key, ten, 1000);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    assert_true(grant(&test, 2, 1, 2000));
    /* Nothing of the first grant is used or reported. */
    assert_int_equal(report(&test, 2000), 1);
    partition = rlr_ledger_lock(&test.ledger, 0, 2000);
    assert_true(partition->member.lost_until_ms > 2000);
    rlr_ledger_unlock(&test.ledger, 0);
    end(&test);
}

static void a_warning_is_due_once_a_minute(void **state)
{
    case_t test;

    begin(&test, 16);
    assert_true(rlr_ledger_warns(&test.ledger, RLR_LEDGER_AWAY, 1000));
    assert_false(rlr_ledger_warns(&test.ledger, RLR_LEDGER_AWAY, 60999));
    assert_true(rlr_ledger_warns(&test.ledger, RLR_LEDGER_AWAY, 61000));
    assert_true(rlr_ledger_warns(&test.ledger, RLR_LEDGER_LATE, 61001));
    end(&test);
}

static void leases_that_may_be_used_are_counted(void **state)
{
    static const rlr_limit_t large = {6400, 3600};
    unsigned char key[RLR_STORE_KEY_BYTES];
    rlr_store_grant_t granted = {100, 0, 0, 0};
    rlr_ledger_leases_t leases;
    rlr_store_item_t item;
    rlr_lease_t *lease;
    case_t test;

    begin(&test, 256);
    make_key(key, 1);
    lease = rlr_ledger_lock_lease(&test.ledger, key, large, 1000);
    rlr_lease_request(&item, lease, 1, 1, 1000);
    assert_int_equal(rlr_lease_grant(lease, &item, &granted, 1000, 1000), 1);
    rlr_ledger_unlock_lease(&test.ledger, key);
    assert_true(grant(&test, 2, 1, 1000));
    rlr_ledger_count_leases(&leases, &test.ledger, 1000);
    assert_int_equal(leases.keys, 1);
    assert_int_equal(leases.left, 99);
    rlr_ledger_count_leases(&leases, &test.ledger, 3000);
    assert_int_equal(leases.keys, 0);
    assert_int_equal(leases.left, 0);
    end(&test);
}

static void requests_are_counted_by_region(void **state)
{
    rlr_stats_t *stats;
    rlr_stats_region_t *regions[RLR_STATS_REGIONS + 1];
    case_t test;

    begin(&test, 16);
    stats = rlr_ledger_stats(&test.ledger);
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
    stats = rlr_ledger_stats(&test.ledger);
    rlr_stats_round(stats, 1000, false);
    rlr_stats_round(stats, 1001, false);
    rlr_stats_round(stats, 600000, true);
    assert_int_equal(stats->rounds[0], 1);
    assert_int_equal(stats->rounds[1], 1);
    assert_int_equal(stats->rounds[RLR_STATS_BOUNDS], 1);
    assert_int_equal(rlr_stats_rounds(stats), 3);
    assert_int_equal(stats->round_us, 602001);
    assert_int_equal(stats->errors, 1);
    end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(all_marks_of_a_partition_are_reported),
        CHECK_TEST(all_leases_of_a_partition_are_returned),
        CHECK_TEST(a_lease_that_counts_is_not_replaced),
        CHECK_TEST(a_lease_with_a_cached_refusal_is_not_replaced),
        CHECK_TEST(a_key_with_another_limit_has_no_lease_of_the_old_one),
        CHECK_TEST(one_thread_requests_more_of_a_key_for_all),
        CHECK_TEST(operators_see_the_worst_of_all_partitions),
        CHECK_TEST(marks_that_cannot_be_read_are_lost),
        CHECK_TEST(a_lost_mark_is_remembered_until_it_expires),
        CHECK_TEST(a_process_that_dies_with_the_lock_of_a_partition),
        CHECK_TEST(a_process_that_dies_with_the_lock_of_a_lease),
        CHECK_TEST(a_warning_is_due_once_a_minute),
        CHECK_TEST(leases_that_may_be_used_are_counted),
        CHECK_TEST(requests_are_counted_by_region),
        CHECK_TEST(round_trips_are_counted_by_duration),
    };

    return CHECK_RUN(tests);
}
