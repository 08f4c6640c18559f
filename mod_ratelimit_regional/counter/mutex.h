/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes of shared memory: robust, so that the lock of a process that has died
 * is free again. */
#ifndef RLR_MUTEX_H
#define RLR_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

/* False: the system has no robust mutexes. */
bool rlr_mutex_init(pthread_mutex_t *mutex);

/*
 * Takes the mutex, in at most so many waits of one second; 0: only if it is
 * free at once. Returns 0, EOWNERDEAD with the mutex held, or another error: a
 * process that is stopped with a mutex must not stop all others.
 */
int rlr_mutex_take(pthread_mutex_t *mutex, int waits);

#endif
