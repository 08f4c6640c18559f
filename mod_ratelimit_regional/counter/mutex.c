/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and takes mutexes of shared memory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_mutex_clocklock() */
#endif
#include "mutex.h"

#include <errno.h>
#include <time.h>

bool rlr_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    bool made;

    if (pthread_mutexattr_init(&attributes) != 0) {
        return false;
    }
    made = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED)
            == 0
        && pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0
        && pthread_mutex_init(mutex, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return made;
}

/* Waits for the lock, one second at most. The thread sanitizer of some
 * compilers does not know pthread_mutex_clocklock(). */
static int take_soon(pthread_mutex_t *mutex)
{
#if defined(__SANITIZE_THREAD__)
    return pthread_mutex_lock(mutex);
#else
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
#endif
}

/*
 * An unlock wakes one waiting thread. If a third thread takes the lock first,
 * and the process of the woken one is then killed, neither the kernel nor the C
 * library wakes the next: it would sleep although the lock is free.
 */
int rlr_mutex_take(pthread_mutex_t *mutex, int waits)
{
    int rv = pthread_mutex_trylock(mutex);

    for (int i = 0; i < waits && (rv == EBUSY || rv == ETIMEDOUT); i++) {
        rv = take_soon(mutex);
    }
    return rv;
}
