/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/protocol/wait_slot.c */
/* Slots of threads that wait for the store. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/protocol/wait_slot.h"

#define COUNT 8U

typedef struct case_t {
    rlr_wait_slot_t all[COUNT];
    rlr_wait_recent_t recent;
    rlr_wait_slots_t slots;
    rlr_wait_slot_hold_t holds[COUNT];
} case_t;

static void begin(case_t *test)
{
    memset(test, 0, sizeof(*test));
    test->slots = (rlr_wait_slots_t){test->all, COUNT, &test->recent};
}

/* How many slots a client gets in addition, of at most `most`, until 2000. */
static uint32_t take(case_t *test, uint32_t client, uint32_t most,
                     uint64_t now_ms)
{
    uint32_t taken = 0;

    while (taken < most
           && rlr_wait_slot_take(&test->holds[taken], &test->slots, client,
                                 now_ms, 2000)) {
        taken++;
    }
    return taken;
}

static void one_client_gets_half_of_the_slots(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(take(&test, 1, COUNT, 1000), COUNT / 2);
}

static void clients_that_come_later_get_wait_slots(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(take(&test, 1, COUNT, 1000), 4);
    assert_int_equal(take(&test, 2, COUNT, 1000), 2);
    assert_int_equal(take(&test, 3, COUNT, 1000), 1);
    assert_int_equal(take(&test, 4, COUNT, 1000), 1);
    assert_int_equal(take(&test, 5, COUNT, 1000), 0);
}

static void a_client_with_the_hash_0_is_one_like_others(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(take(&test, 1, COUNT, 1000), 4);
    assert_int_equal(take(&test, 0, COUNT, 1000), 2);
}

static void a_slot_is_free_again_when_it_is_returned(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(take(&test, 1, COUNT, 1000), 4);
    rlr_wait_slot_return(&test.holds[2]);
    assert_int_equal(take(&test, 1, COUNT, 1000), 1);
}

static void a_slot_of_a_process_that_has_died_is_free_after_its_time(
    void **state)
{
    case_t test;
    rlr_wait_slot_hold_t held;

    begin(&test);
    assert_int_equal(take(&test, 1, COUNT, 1000), 4);
    held = test.holds[0];
    assert_int_equal(take(&test, 2, COUNT, 1999), 2);
    assert_true(rlr_wait_slot_take(&test.holds[0], &test.slots, 3, 2000, 3000));
    /* One who returns it later takes it from nobody. */
    rlr_wait_slot_return(&held);
    for (uint32_t i = 0; i < 7; i++) {
        rlr_wait_slot_hold_t hold;

        assert_true(rlr_wait_slot_take(&hold, &test.slots, 10 + i, 2000, 3000));
    }
    assert_false(rlr_wait_slot_take(&held, &test.slots, 20, 2000, 3000));
}

/* Clients 1 to `clients` take all slots they get in each of 300 steps, in which
 * one is returned. Another client comes in each of the last 200; how often it
 * gets a slot. */
static uint32_t contend(case_t *test, uint32_t clients)
{
    rlr_wait_slot_hold_t held[COUNT];
    uint32_t count = 0;
    uint32_t admitted = 0;

    for (uint32_t step = 0; step < 300; step++) {
        uint64_t now_ms = 1000 + step;
        rlr_wait_slot_hold_t hold;

        if (count > 0) {
            uint32_t returned = step % count--;

            rlr_wait_slot_return(&held[returned]);
            held[returned] = held[count];
        }
        for (uint32_t i = 0; i < clients && count < COUNT; i++) {
            if (rlr_wait_slot_take(&held[count], &test->slots,
                                   1 + (step + i) % clients, now_ms, 2000)) {
                count++;
            }
        }
        if (step >= 100
            && rlr_wait_slot_take(&hold, &test->slots, 1000 + step, now_ms,
                                  2000)) {
            rlr_wait_slot_return(&hold);
            admitted++;
        }
    }
    return admitted;
}

static void a_few_clients_leave_slots_for_those_that_come_less_often(
    void **state)
{
    static const uint32_t clients[] = {1, 2, 4, 8};

    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        case_t test;

        begin(&test);
        /* The first one finds no slot, which begins the reserve. */
        assert_in_range(contend(&test, clients[i]), 194, 200);
    }
}

static void a_few_clients_alone_are_not_held_to_half_of_the_slots(void **state)
{
    case_t test;
    uint32_t free = 0;

    begin(&test);
    contend(&test, 8);
    /* After the reserve. */
    for (uint32_t step = 0; step < 100; step++) {
        rlr_wait_slot_hold_t hold;

        rlr_wait_slot_take(&hold, &test.slots, 1 + step % 8, 2600, 9000);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        free += atomic_load(&test.all[i].holder) == 0;
    }
    assert_in_range(free, 0, 1);
}

/* ---- Brief waits ---- */

/* How many of `count` brief waits of a client, one each step_ms, may be without
 * a slot. */
static uint32_t wait_briefly(const case_t *test, uint32_t client,
                             uint32_t count, uint64_t now_ms, uint64_t step_ms)
{
    uint32_t waits = 0;

    for (uint32_t i = 0; i < count; i++) {
        waits += rlr_wait_slot_may_be_brief(&test->slots, client,
                                            now_ms + i * step_ms);
    }
    return waits;
}

static void a_client_alone_may_wait_briefly_as_often_as_it_comes(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(wait_briefly(&test, 1, 1000, 1000, 1), 1000);
}

static void a_very_frequent_client_needs_a_slot_while_others_come(void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(wait_briefly(&test, 1, 128, 1000, 1), 128);
    assert_int_equal(wait_briefly(&test, 2, 1, 1128, 1), 1);
    assert_int_equal(wait_briefly(&test, 1, 10, 1129, 1), 0);
    /* And has half of these. */
    assert_int_equal(take(&test, 1, COUNT, 1140), COUNT / 2);
    /* Until there are few waits. */
    assert_int_equal(wait_briefly(&test, 1, 10, 1700, 1), 10);
}

static void a_very_frequent_client_needs_no_slot_once_no_others_come(
    void **state)
{
    case_t test;

    begin(&test);
    assert_int_equal(wait_briefly(&test, 1, 128, 1000, 1), 128);
    assert_int_equal(wait_briefly(&test, 2, 1, 1128, 1), 1);
    assert_in_range(wait_briefly(&test, 1, 300, 1700, 1), 128, 299);
    assert_int_equal(wait_briefly(&test, 1, 10, 2128, 1), 10);
}

static void a_client_with_some_parallel_requests_needs_no_slot(void **state)
{
    case_t test;

    begin(&test);
    /* 30 at once five times a second, and another one between them. */
    for (uint64_t now_ms = 1000; now_ms < 11000; now_ms += 200) {
        assert_int_equal(wait_briefly(&test, 1, 30, now_ms, 0), 30);
        assert_int_equal(wait_briefly(&test, 2, 1, now_ms + 100, 0), 1);
    }
}

static void the_store_is_slow_for_a_second_or_until_an_answer_in_time(
    void **state)
{
    case_t test;

    begin(&test);
    assert_false(rlr_wait_slot_is_slow(&test.slots, 1000));
    rlr_wait_slot_set_slow(&test.slots, true, 1000);
    assert_true(rlr_wait_slot_is_slow(&test.slots, 1999));
    assert_false(rlr_wait_slot_is_slow(&test.slots, 2000));
    rlr_wait_slot_set_slow(&test.slots, true, 2000);
    rlr_wait_slot_set_slow(&test.slots, false, 2001);
    assert_false(rlr_wait_slot_is_slow(&test.slots, 2001));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(one_client_gets_half_of_the_slots),
        CHECK_TEST(clients_that_come_later_get_wait_slots),
        CHECK_TEST(a_client_with_the_hash_0_is_one_like_others),
        CHECK_TEST(a_slot_is_free_again_when_it_is_returned),
        CHECK_TEST(a_few_clients_leave_slots_for_those_that_come_less_often),
        CHECK_TEST(a_few_clients_alone_are_not_held_to_half_of_the_slots),
        CHECK_TEST(a_slot_of_a_process_that_has_died_is_free_after_its_time),
        CHECK_TEST(a_client_alone_may_wait_briefly_as_often_as_it_comes),
        CHECK_TEST(a_very_frequent_client_needs_a_slot_while_others_come),
        CHECK_TEST(a_very_frequent_client_needs_no_slot_once_no_others_come),
        CHECK_TEST(a_client_with_some_parallel_requests_needs_no_slot),
        CHECK_TEST(the_store_is_slow_for_a_second_or_until_an_answer_in_time),
    };

    return CHECK_RUN(tests);
}
