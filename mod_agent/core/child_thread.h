/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a child in addition to the MPM's. */
#ifndef AGENT_CORE_CHILD_THREAD_H
#define AGENT_CORE_CHILD_THREAD_H

#include <signal.h>

#include <apr_thread_proc.h>

/* Starts a thread, in pool, with all signals blocked: they are for the MPM's
 * own threads. Errors: those of apr_thread_create(). */
apr_status_t agent_child_thread_start(apr_thread_t **out,
                                      apr_thread_start_t run, void *data,
                                      apr_pool_t *pool);

/* Blocks the signals in whose handlers a child of the prefork MPM ends:
 * SIGTERM, and SIGHUP of a restart. Sets *before to the signal mask until now.
 * A blocked signal is delivered by
 * agent_child_thread_restore_signals(before). */
void agent_child_thread_block_signals(sigset_t *before);
void agent_child_thread_restore_signals(const sigset_t *before);

/* Waits for the end of the thread; no effect for NULL. */
void agent_child_thread_join(apr_thread_t *thread);

#endif
