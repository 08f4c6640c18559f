/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of its own, and grants to keys of partition 0. */
#ifndef AGENT_T_UNIT_RATELIMIT_SHARED_H
#define AGENT_T_UNIT_RATELIMIT_SHARED_H

#include <string.h>
#include <sys/mman.h>

#include "../../mod_ratelimit_regional/protocol/lease_table.h"

static const unsigned char id[RLR_MESSAGE_ID_BYTES] = {9, 8, 7};
static const unsigned char secret[RLR_SHARED_SECRET_BYTES] = {6, 5, 4};
static const rlr_limit_t ten = {10, 10};

typedef struct case_t {
    rlr_shared_t shared;
    void *memory;
    size_t size;
} case_t;

static inline void begin(case_t *test, uint32_t keys)
{
    test->size = rlr_shared_size(keys);
    test->memory = mmap(NULL, test->size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(
        rlr_shared_create(&test->shared, test->memory, keys, id, secret));
}

static inline void end(case_t *test)
{
    munmap(test->memory, test->size);
}

static inline void make_key(unsigned char *key, uint32_t number)
{
    memset(key, 0, RLR_MESSAGE_KEY_BYTES);
    memcpy(key + 8, &number, sizeof(number));
}

/* Grants `amount` to a key, which is in partition 0. False: no lease. */
static inline bool grant(case_t *test, uint32_t number, uint32_t amount,
                         uint64_t now_ms)
{
    unsigned char key[RLR_MESSAGE_KEY_BYTES];
    rlr_message_grant_t granted = {amount, 0, 0, 0};
    rlr_message_item_t item;
    rlr_lease_t *lease;

    make_key(key, number);
    lease = rlr_lease_table_lock(&test->shared, key, ten, now_ms);
    if (lease == NULL) {
        return false;
    }
    rlr_lease_request(&item, lease, amount, 1, now_ms);
    assert_int_equal(rlr_lease_grant(lease, &item, &granted, now_ms, now_ms),
                     amount);
    rlr_lease_table_unlock(&test->shared, lease);
    return true;
}

/* The sum of all marks of partition 0. */
static inline uint32_t report(case_t *test, uint64_t now_ms)
{
    rlr_message_mark_t marks[8 * RLR_LEASE_MARKS];
    uint32_t cursor = 0;
    uint32_t sum = 0;
    uint32_t count;

    do {
        count = rlr_lease_table_report(marks, 8 * RLR_LEASE_MARKS, &cursor,
                                       &test->shared, 0, now_ms);
        for (uint32_t i = 0; i < count; i++) {
            sum += marks[i].amount;
        }
    } while (count > 0);
    return sum;
}

#endif
