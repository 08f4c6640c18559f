/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/counter/clock.c */
/* The clock of decisions, on a machine whose wall clock is set. */
#include "check.h"

#include <time.h>

#include "../../mod_ratelimit_regional/counter/clock.h"

static struct timespec monotonic;
static time_t wall;

int clock_gettime(clockid_t clock, struct timespec *out)
{
    *out = clock == CLOCK_MONOTONIC ? monotonic
                                    : (struct timespec){.tv_sec = wall};
    return 0;
}

static void the_wall_clock_may_be_set(void **state)
{
    rlr_time_t now;

    monotonic = (struct timespec){.tv_sec = 10, .tv_nsec = 5000000};
    wall = 1800000000;
    rlr_clock_monotonic.read(&now, NULL);
    assert_int_equal(now.floor_ms, 10005);
    wall -= 3600;
    rlr_clock_monotonic.read(&now, NULL);
    assert_int_equal(now.floor_ms, 10005);
    assert_int_equal(now.ceil_ms, 10005);
}

static void a_time_is_rounded_down_and_up(void **state)
{
    rlr_time_t now;

    monotonic = (struct timespec){.tv_sec = 10, .tv_nsec = 5000001};
    rlr_clock_monotonic.read(&now, NULL);
    assert_int_equal(now.floor_ms, 10005);
    assert_int_equal(now.ceil_ms, 10006);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_wall_clock_may_be_set),
        CHECK_TEST(a_time_is_rounded_down_and_up)};

    return CHECK_RUN(tests);
}
