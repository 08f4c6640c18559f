/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/ */
/* OBJECTS: ../mod_ratelimit_regional/counter/ */
/* The slots of leases, and all leases of a partition. */
#include "check.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ratelimit_shared.h"

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
        unsigned char key[RLR_MESSAGE_KEY_BYTES];
        rlr_message_grant_t granted = {9, 0, 0, 0};
        rlr_message_item_t item;
        rlr_lease_t *lease;

        make_key(key, i);
        memcpy(key + 4, &i, sizeof(i));
        lease = rlr_lease_table_lock(&test.shared, key, large, 1000);
        rlr_lease_request(&item, lease, 1, i + 1, 1000);
        rlr_lease_grant(lease, &item, &granted, 1000, 1000);
        rlr_lease_table_unlock(&test.shared, lease);
    }
    do {
        rlr_message_item_t items[8 * RLR_LEASE_CLOSINGS];

        count = rlr_lease_table_close(items, 8 * RLR_LEASE_CLOSINGS, &cursor,
                                      &test.shared, 0, 1001);
        closed += count;
    } while (count > 0);
    assert_int_equal(closed, 40);
    end(&test);
}

/* Grants one to keys of partition 0 until one has no slot; returns their
 * number. */
static uint32_t fill(case_t *test, uint64_t now_ms)
{
    uint32_t count = 0;

    while (grant(test, count, 1, now_ms)) {
        count++;
    }
    return count;
}

static void a_lease_that_counts_is_not_replaced(void **state)
{
    case_t test;
    uint32_t count;

    begin(&test, 16);
    count = fill(&test, 1000);
    assert_int_equal(report(&test, 1000), count);
    assert_false(grant(&test, count, 1, 1001));
    /* They have expired. */
    assert_true(grant(&test, count, 1, 30000));
    end(&test);
}

static void a_lease_with_a_cached_refusal_is_not_replaced(void **state)
{
    static const rlr_message_grant_t none = {0, 700, 0, 0};
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    rlr_message_item_t item;
    rlr_lease_t *lease;
    uint32_t count = 0;
    case_t test;

    begin(&test, 16);
    for (;;) {
        make_key(key, count);
        lease = rlr_lease_table_lock(&test.shared, key, ten, 1000);
        if (lease == NULL) {
            break;
        }
        rlr_lease_request(&item, lease, 1, 1, 1000);
        rlr_lease_grant(lease, &item, &none, 1000, 1000);
        rlr_lease_table_unlock(&test.shared, lease);
        count++;
    }
    assert_false(grant(&test, count, 1, 1699));
    assert_true(grant(&test, count, 1, 1700));
    end(&test);
}

/* A key of one of all partitions. */
static void make_spread_key(unsigned char *key, uint32_t number)
{
    make_key(key, number);
    key[1] = (unsigned char)(number % RLR_SHARED_PARTITIONS);
}

/* Claims slots for `count` keys from the first one on; returns how many have
 * one. */
static uint32_t claim_keys(case_t *test, uint32_t first, uint32_t count,
                           bool are_spread)
{
    uint32_t claimed = 0;

    for (uint32_t i = first; i < first + count; i++) {
        static const rlr_message_grant_t granted = {1, 0, 0, 0};
        unsigned char key[RLR_MESSAGE_KEY_BYTES];
        rlr_message_item_t item;
        rlr_lease_t *lease;

        make_key(key, i);
        if (are_spread) {
            make_spread_key(key, i);
        }
        lease = rlr_lease_table_lock(&test->shared, key, ten, 1000);
        if (lease != NULL) {
            rlr_lease_request(&item, lease, 1, 1, 1000);
            rlr_lease_grant(lease, &item, &granted, 1000, 1000);
            rlr_lease_table_unlock(&test->shared, lease);
            claimed++;
        }
    }
    return claimed;
}

static void keys_at_the_load_of_a_table_have_slots(void **state)
{
    static const uint32_t sizes[] = {16, 1024, 4096, 65536};
    case_t test;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t keys = sizes[i] * 6 / 10;

        begin(&test, sizes[i]);
        assert_int_equal(claim_keys(&test, 0, keys, true), keys);
        end(&test);
    }
}

static void keys_of_one_partition_have_the_slots_of_all(void **state)
{
    case_t test;

    begin(&test, 65536);
    assert_int_equal(claim_keys(&test, 0, 39321, false), 39321);
    end(&test);
}

static void the_slots_of_a_key_follow_from_the_secret(void **state)
{
    static const unsigned char other[RLR_SHARED_SECRET_BYTES] = {1};
    uint32_t first_without;
    case_t test;

    begin(&test, 16);
    first_without = fill(&test, 1000);
    end(&test);
    begin(&test, 16);
    assert_true(rlr_shared_create(&test.shared, test.memory, 16, id, other));
    assert_int_not_equal(fill(&test, 1000), first_without);
    end(&test);
}

static void a_key_with_another_limit_has_no_lease_of_the_old_one(void **state)
{
    static const rlr_limit_t twenty = {20, 10};
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    const rlr_lease_t *lease;
    case_t test;

    begin(&test, 16);
    assert_true(grant(&test, 1, 1, 1000));
    make_key(key, 1);
    lease = rlr_lease_table_lock(&test.shared, key, twenty, 1001);
    assert_true(rlr_limit_equal(lease->limit, twenty));
    rlr_lease_table_unlock(&test.shared, lease);
    assert_int_equal(report(&test, 1001), 1);
    end(&test);
}

static void one_thread_requests_more_of_a_key_for_all(void **state)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    rlr_lease_t *lease;
    case_t test;

    begin(&test, 16);
    make_key(key, 1);
    lease = rlr_lease_table_lock(&test.shared, key, ten, 1000);
    assert_true(rlr_lease_table_may_request(lease, 1000));
    assert_false(rlr_lease_table_may_request(lease, 1019));
    assert_true(rlr_lease_table_may_request(lease, 1020));
    rlr_lease_table_unlock(&test.shared, lease);
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
        unsigned char key[RLR_MESSAGE_KEY_BYTES];

        close(held[1]);
        make_key(key, 1);
        rlr_lease_table_lock(&test->shared, key, ten, 1000);
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
    const rlr_partition_state_t *partition;
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
    partition = rlr_shared_lock(&test.shared, 0, 2000);
    assert_true(partition->member.lost_until_ms > 2000);
    rlr_shared_unlock(&test.shared, 0);
    close(held);
    waitpid(pid, NULL, 0);
    end(&test);
}

static void die_with_lease(case_t *test, uint32_t number)
{
    pid_t pid = fork();

    if (pid == 0) {
        unsigned char key[RLR_MESSAGE_KEY_BYTES];

        make_key(key, number);
        rlr_lease_table_lock(&test->shared, key, ten, 1000);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

static void a_process_that_dies_with_the_lock_of_a_lease(void **state)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    const rlr_partition_state_t *partition;
    rlr_lease_t *lease;
    case_t test;
    uint64_t wait_ms;

    begin(&test, 16);
    assert_int_equal(claim_keys(&test, 0, 500, false), 500);
    die_with_lease(&test, 7);
    /* That key counts as used up, and the others as before. */
    assert_int_equal(report(&test, 2000), 499 + ten.count);
    make_key(key, 7);
    lease = rlr_lease_table_lock(&test.shared, key, ten, 2000);
    assert_int_equal(rlr_lease_take(lease, 2000, &wait_ms), RLR_LEASE_ASK);
    assert_true(rlr_lease_live_until(lease, 2000) >= 2000 + 11000);
    rlr_lease_table_unlock(&test.shared, lease);
    partition = rlr_shared_lock(&test.shared, 0, 2000);
    assert_int_equal(partition->member.lost_until_ms, 0);
    rlr_shared_unlock(&test.shared, 0);
    end(&test);
}

static void a_process_that_dies_while_it_makes_a_lease(void **state)
{
    case_t test;

    begin(&test, 16);
    assert_int_equal(claim_keys(&test, 0, 500, false), 500);
    die_with_lease(&test, 1000);
    assert_int_equal(report(&test, 2000), 500 + ten.count);
    assert_int_equal(report(&test, 60000), 0);
    end(&test);
}

static void leases_that_may_be_used_are_counted(void **state)
{
    static const rlr_limit_t large = {6400, 3600};
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    rlr_message_grant_t granted = {100, 0, 0, 0};
    rlr_lease_table_count_t leases;
    rlr_message_item_t item;
    rlr_lease_t *lease;
    case_t test;

    begin(&test, 256);
    make_key(key, 1);
    lease = rlr_lease_table_lock(&test.shared, key, large, 1000);
    rlr_lease_request(&item, lease, 1, 1, 1000);
    assert_int_equal(rlr_lease_grant(lease, &item, &granted, 1000, 1000), 1);
    rlr_lease_table_unlock(&test.shared, lease);
    assert_true(grant(&test, 2, 1, 1000));
    rlr_lease_table_count(&leases, &test.shared, 1000);
    assert_int_equal(leases.keys, 1);
    assert_int_equal(leases.unused, 99);
    rlr_lease_table_count(&leases, &test.shared, 3000);
    assert_int_equal(leases.keys, 0);
    assert_int_equal(leases.unused, 0);
    end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(all_marks_of_a_partition_are_reported),
        CHECK_TEST(all_leases_of_a_partition_are_returned),
        CHECK_TEST(a_lease_that_counts_is_not_replaced),
        CHECK_TEST(a_lease_with_a_cached_refusal_is_not_replaced),
        CHECK_TEST(keys_at_the_load_of_a_table_have_slots),
        CHECK_TEST(keys_of_one_partition_have_the_slots_of_all),
        CHECK_TEST(the_slots_of_a_key_follow_from_the_secret),
        CHECK_TEST(a_key_with_another_limit_has_no_lease_of_the_old_one),
        CHECK_TEST(one_thread_requests_more_of_a_key_for_all),
        CHECK_TEST(marks_that_cannot_be_read_are_lost),
        CHECK_TEST(a_process_that_dies_with_the_lock_of_a_lease),
        CHECK_TEST(a_process_that_dies_while_it_makes_a_lease),
        CHECK_TEST(leases_that_may_be_used_are_counted),
    };

    return CHECK_RUN(tests);
}
