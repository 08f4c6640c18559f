/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/member.c */
/* When a host that was a member takes part like one that has been started. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/protocol/member.h"
#include "../../mod_ratelimit_regional/protocol/period.h"

static const rlr_member_config_t config = {{1, 2, 3}, "one", 4, 3600000};

/* A call at that time, and its reply. */
static void exchange(rlr_member_t *member, rlr_message_kind_t kind,
                     uint64_t now_ms)
{
    rlr_message_reply_t reply = {.now_ms = 5000000 + now_ms, .number = 2};
    rlr_message_call_t call;

    memcpy(reply.epoch, "0123456789abcdef", RLR_MESSAGE_EPOCH_BYTES);
    rlr_member_fill(&call, member, &config, kind, now_ms);
    rlr_member_answer(member, &call, &reply, member->generation, now_ms,
                      now_ms);
}

/* A member at 1000 ms. */
static void join(rlr_member_t *member)
{
    rlr_member_init(member);
    exchange(member, RLR_MESSAGE_HELLO, 1000);
    exchange(member, RLR_MESSAGE_HEARTBEAT, 1000);
    assert_int_equal(member->number, 2);
}

static bool is_new(const rlr_member_t *member, const rlr_member_config_t *of,
                   uint64_t now_ms)
{
    rlr_message_call_t call;

    rlr_member_fill(&call, member, of, RLR_MESSAGE_HEARTBEAT, now_ms);
    return (call.flags & RLR_MESSAGE_NEW) != 0;
}

static void a_host_with_other_values_is_a_new_one(void **state)
{
    static const rlr_member_config_t more = {{1, 2, 3}, "one", 5, 3600000};
    static const rlr_member_config_t longer = {{1, 2, 3}, "one", 4, 7200000};
    rlr_member_t member;

    join(&member);
    assert_false(is_new(&member, &config, 1500));
    assert_true(is_new(&member, &more, 1500));
    assert_true(is_new(&member, &longer, 1500));
}

static void a_host_that_has_ended_is_a_new_one(void **state)
{
    uint64_t held_ms = rlr_period_end(config.share_ms);
    uint64_t end_ms = 1000 + held_ms + rlr_period_drift(held_ms);
    rlr_member_t member;

    join(&member);
    assert_false(is_new(&member, &config, end_ms));
    assert_true(is_new(&member, &config, end_ms + 1));
}

static void a_host_whose_process_died_with_the_lock_is_not_new(void **state)
{
    rlr_member_t member;

    join(&member);
    rlr_member_recover(&member, 20000);
    assert_false(is_new(&member, &config, 100000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(a_host_with_other_values_is_a_new_one),
        CHECK_TEST(a_host_that_has_ended_is_a_new_one),
        CHECK_TEST(a_host_whose_process_died_with_the_lock_is_not_new),
    };

    return CHECK_RUN(tests);
}
