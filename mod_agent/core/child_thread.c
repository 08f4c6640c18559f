/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a child in addition to the MPM's. */
#include "child_thread.h"

#include <pthread.h>

apr_status_t agent_child_thread_start(apr_thread_t **out,
                                      apr_thread_start_t run, void *data,
                                      apr_pool_t *pool)
{
    apr_status_t rv;
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rv = apr_thread_create(out, NULL, run, data, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rv;
}

void agent_child_thread_block_signals(sigset_t *before)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &blocked, before);
}

void agent_child_thread_restore_signals(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void agent_child_thread_join(apr_thread_t *thread)
{
    apr_status_t status;

    if (thread != NULL) {
        apr_thread_join(&status, thread);
    }
}
