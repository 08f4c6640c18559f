/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: core/clock.c */
/* The clocks, with a host that was suspended for an hour. */
#include "check.h"

#include <sys/timerfd.h>
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

/* As it was made and set last. */
static struct {
    int clock;
    int flags;
    struct itimerspec spec;
} timer;

int timerfd_create(int clock, int flags)
{
    timer.clock = clock;
    return 7;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *spec,
                    struct itimerspec *old)
{
    timer.flags = flags;
    timer.spec = *spec;
    return fd == 7 ? 0 : -1;
}

static void the_timer_of_keys_has_their_clock_and_an_absolute_time(void **state)
{
    int fd = agent_clock_timer_open();

    assert_int_equal(timer.clock, CLOCK_BOOTTIME);
    assert_true(agent_clock_timer_set(fd, apr_time_from_sec(3611) + 5));
    assert_int_equal(timer.flags, TFD_TIMER_ABSTIME);
    assert_int_equal(timer.spec.it_value.tv_sec, 3611);
    assert_in_range(timer.spec.it_value.tv_nsec, 5000, 5999);
    assert_true(agent_clock_timer_set(fd, AGENT_CLOCK_NEVER));
    assert_int_equal(timer.spec.it_value.tv_sec, 0);
    assert_int_equal(timer.spec.it_value.tv_nsec, 0);
    assert_false(agent_clock_timer_set(-1, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(only_the_clock_of_keys_goes_on_while_the_host_is_suspended),
        CHECK_TEST(the_timer_of_keys_has_their_clock_and_an_absolute_time)};

    return CHECK_RUN(tests);
}
