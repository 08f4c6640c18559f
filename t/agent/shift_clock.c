/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded by clock_jumps.t: while the file that AGENT_TEST_SHIFT_CLOCK names
 * exists, the wall clock is an hour behind, as after a person or a time server
 * has set it back. The clocks that nobody sets continue.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t shift(void)
{
    const char *flag = getenv("AGENT_TEST_SHIFT_CLOCK");

    return flag != NULL && access(flag, F_OK) == 0 ? 3600 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT,
                                                      "clock_gettime");
    int result = real(clock, now);

    if (result == 0
        && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        now->tv_sec -= shift();
    }
    return result;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec time;
    int result = clock_gettime(CLOCK_REALTIME, &time);

    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}
