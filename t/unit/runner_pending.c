/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: runners/builtin/run/pending.c */
/* Which runs may receive more text while there is too much of it. */
#include "check.h"

#include "runners/builtin/run/pending.h"

static void below_the_limit_every_run_receives(void **state)
{
    runner_pending_t pending = {.bytes_max = 10 * RUNNER_PENDING_SMALL};
    size_t first = 0;

    runner_pending_set(&pending, &first, 9 * RUNNER_PENDING_SMALL);
    assert_int_equal(pending.bytes, 9 * RUNNER_PENDING_SMALL);
    assert_false(runner_pending_is_paused(&pending, &first));
}

static void above_the_limit_one_run_receives_until_it_is_done(void **state)
{
    runner_pending_t pending = {.bytes_max = RUNNER_PENDING_SMALL};
    size_t first = 0;
    size_t second = 0;
    size_t small = 0;

    runner_pending_set(&pending, &first, RUNNER_PENDING_SMALL + 1);
    runner_pending_set(&pending, &second, RUNNER_PENDING_SMALL + 1);
    runner_pending_set(&pending, &small, RUNNER_PENDING_SMALL);
    assert_false(runner_pending_is_paused(&pending, &second));
    assert_true(runner_pending_is_paused(&pending, &first));
    assert_false(runner_pending_is_paused(&pending, &small));
    runner_pending_set(&pending, &second, 2 * RUNNER_PENDING_SMALL);
    assert_false(runner_pending_is_paused(&pending, &second));
    runner_pending_set(&pending, &second, 0);
    assert_false(runner_pending_is_paused(&pending, &first));
    runner_pending_set(&pending, &first, 0);
    assert_int_equal(pending.bytes, RUNNER_PENDING_SMALL);
}

static void one_run_receives_while_memory_is_short(void **state)
{
    runner_pending_t pending = {.bytes_max = 10 * RUNNER_PENDING_SMALL,
                                .is_memory_short = true};
    size_t first = 0;
    size_t second = 0;

    runner_pending_set(&pending, &first, RUNNER_PENDING_SMALL + 1);
    runner_pending_set(&pending, &second, RUNNER_PENDING_SMALL + 1);
    assert_false(runner_pending_is_paused(&pending, &first));
    assert_true(runner_pending_is_paused(&pending, &second));
    pending.is_memory_short = false;
    assert_false(runner_pending_is_paused(&pending, &second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(below_the_limit_every_run_receives),
        CHECK_TEST(above_the_limit_one_run_receives_until_it_is_done),
        CHECK_TEST(one_run_receives_while_memory_is_short),
    };

    return CHECK_RUN(tests);
}
