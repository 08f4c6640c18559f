/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/clock.c */
/* The clocks, with a host that was suspended for an hour. */
#include "check.h"

#include <time.h>

#include "../../mod_agent/core/clock.h"

int clock_gettime(clockid_t clock, struct timespec *out)
{
    *out = (struct timespec){.tv_sec = clock == CLOCK_BOOTTIME ? 3610 : 10,
                             .tv_nsec = 5000};
    return clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ? 0 : -1;
}

static void only_the_clock_of_keys_goes_on_while_the_host_is_suspended(
    void **state)
{
    assert_int_equal(agent_clock_now(), apr_time_from_sec(10) + 5);
    assert_int_equal(agent_clock_boot_now(), apr_time_from_sec(3610) + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(only_the_clock_of_keys_goes_on_while_the_host_is_suspended)};

    return CHECK_RUN(tests);
}
