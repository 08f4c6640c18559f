/* SPDX-License-Identifier: Apache-2.0 */
/* A ledger in memory of its own, and grants to keys of partition 0. */
#ifndef AGENT_T_UNIT_RATELIMIT_LEDGER_H
#define AGENT_T_UNIT_RATELIMIT_LEDGER_H

#include <string.h>
#include <sys/mman.h>

#include "../../mod_ratelimit_regional/group/leases.h"

static const unsigned char id[RLR_STORE_ID_BYTES] = {9, 8, 7};
static const unsigned char secret[RLR_LEDGER_SECRET_BYTES] = {6, 5, 4};
static const rlr_limit_t ten = {10, 10};

typedef struct case_t {
    rlr_ledger_t ledger;
    void *memory;
    size_t size;
} case_t;

static inline void begin(case_t *test, uint32_t keys)
{
    test->size = rlr_ledger_size(keys);
    test->memory = mmap(NULL, test->size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(
        rlr_ledger_create(&test->ledger, test->memory, keys, id, secret));
}

static inline void end(case_t *test)
{
    munmap(test->memory, test->size);
}

static inline void make_key(unsigned char *key, uint32_t number)
{
    memset(key, 0, RLR_STORE_KEY_BYTES);
    memcpy(key + 8, &number, sizeof(number));
}

/* Grants `amount` to a key, which is in partition 0. False: no lease. */
static inline bool grant(case_t *test, uint32_t number, uint32_t amount,
                         uint64_t now_ms)
{
    unsigned char key[RLR_STORE_KEY_BYTES];
    rlr_store_grant_t granted = {amount, 0, 0, 0};
    rlr_store_item_t item;
    rlr_lease_t *lease;

    make_key(key, number);
    lease = rlr_leases_lock(&test->ledger, key, ten, now_ms);
    if (lease == NULL) {
        return false;
    }
    rlr_lease_request(&item, lease, amount, 1, now_ms);
    assert_int_equal(rlr_lease_grant(lease, &item, &granted, now_ms, now_ms),
                     amount);
    rlr_leases_unlock(&test->ledger, lease);
    return true;
}

/* The sum of all marks of partition 0. */
static inline uint32_t report(case_t *test, uint64_t now_ms)
{
    rlr_store_mark_t marks[8 * RLR_LEASE_MARKS];
    uint32_t cursor = 0;
    uint32_t sum = 0;
    uint32_t count;

    do {
        count = rlr_leases_report(marks, 8 * RLR_LEASE_MARKS, &cursor,
                                  &test->ledger, 0, now_ms);
        for (uint32_t i = 0; i < count; i++) {
            sum += marks[i].amount;
        }
    } while (count > 0);
    return sum;
}

#endif
