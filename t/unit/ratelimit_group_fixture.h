/* SPDX-License-Identifier: Apache-2.0 */
/* Three hosts of a group with a simulated store. */
#ifndef RATELIMIT_GROUP_FIXTURE_H
#define RATELIMIT_GROUP_FIXTURE_H

#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/protocol/member.h"
#include "../../mod_ratelimit_regional/protocol/period.h"
#include "../bench/group_store.h"

#define HOSTS 3

static const unsigned char key[RLR_MESSAGE_KEY_BYTES] = {0};
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
    rlr_message_status_t status;
} case_t;

static inline void start_host(case_t *test, int i)
{
    host_t *host = &test->hosts[i];

    rlr_member_init(&host->member);
    host->config.members = HOSTS;
    host->config.share_ms = 200000;
    host->config.id[0]++;
    host->config.id[1] = (unsigned char)i;
}

/* One call, answered at once; returns how many of `wanted` were granted. */
static inline uint32_t call(case_t *test, int i, uint32_t wanted,
                            uint32_t flags)
{
    host_t *host = &test->hosts[i];
    bool is_exclusive;
    rlr_message_kind_t kind = rlr_member_next(&host->member, &is_exclusive,
                                              test->now_ms);
    rlr_message_grant_t grant = {0, -1, 0, 0};
    rlr_message_reply_t reply = {.grants = &grant};
    rlr_message_item_t item = {.limit = test->limit,
                               .wanted = wanted,
                               .waiting = wanted,
                               .tag = ++test->tag};
    rlr_message_call_t sent;

    rlr_member_fill(&sent, &host->member, &host->config, kind, test->now_ms);
    sent.flags |= flags;
    sent.items = &item;
    sent.item_count = kind == RLR_MESSAGE_HEARTBEAT
        && (flags & RLR_MESSAGE_LEAVE) == 0;
    group_store_call(test->store, test->now_ms * 1000, &sent, &reply);
    rlr_member_answer(&host->member, &sent, &reply, host->member.generation,
                      test->now_ms, test->now_ms);
    if (kind == RLR_MESSAGE_REPORT) {
        rlr_member_reported(&host->member, host->member.generation);
    }
    test->wait_ms = grant.wait_ms;
    test->status = reply.status;
    return grant.granted;
}

/* Time passes, with heartbeats of the hosts of the mask. */
static inline void pass(case_t *test, uint64_t ms, unsigned mask)
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
static inline void prepare(case_t *test)
{
    memset(test, 0, sizeof(*test));
    test->store = group_store_make(1, 1000000);
    test->now_ms = 1000;
    test->limit = nine;
    for (int i = 0; i < HOSTS; i++) {
        start_host(test, i);
    }
}

/* Three hosts that have been connected for longer than an interval, and than a
 * former store answers. */
static inline void begin(case_t *test)
{
    prepare(test);
    pass(test, 61000, 7);
    for (int i = 0; i < HOSTS; i++) {
        assert_int_equal(test->hosts[i].member.number, i);
    }
}

static inline void end(case_t *test)
{
    group_store_drop(test->store);
}

static inline uint32_t local(const case_t *test, int i)
{
    return rlr_member_usable_share(&test->hosts[i].member,
                                   &test->hosts[i].config, key, test->limit,
                                   test->now_ms);
}

#endif
