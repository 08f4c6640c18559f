/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/group/wait_slot.c */
/* Slots of threads that wait for the store. */
#include "check.h"

#include <string.h>

#include "../../mod_ratelimit_regional/group/wait_slot.h"

#define COUNT 8U

typedef struct case_t {
    rlr_wait_slot_t all[COUNT];
    rlr_wait_slots_t slots;
    rlr_wait_slot_hold_t holds[COUNT];
} case_t;

static void begin(case_t *test)
{
    memset(test, 0, sizeof(*test));
    test->slots = (rlr_wait_slots_t){test->all, COUNT};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(one_client_gets_half_of_the_slots),
        CHECK_TEST(clients_that_come_later_get_wait_slots),
        CHECK_TEST(a_slot_is_free_again_when_it_is_returned),
        CHECK_TEST(a_slot_of_a_process_that_has_died_is_free_after_its_time),
    };

    return CHECK_RUN(tests);
}
