/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of threads. Errors: as in run.h. */
#ifndef AGENT_MODEL_THREAD_COPY_H
#define AGENT_MODEL_THREAD_COPY_H

#include "../db/pool.h"
#include "ref.h"

/* The ids of a copy. */
typedef struct agent_thread_copy_t {
    const char *thread_id;
    /* Of an earlier copy of the same request, which ended with THREAD_CHANGED;
     * NULL: none. */
    const char *changed_id;
} agent_thread_copy_t;

/* Copies a piece of a thread to a new one, which exists when all is copied.
 * *more: set to false for the first call; true on return: call again.
 * APR_EAGAIN: instead, remains of a deleted run were deleted: call again with
 * the same arguments. Errors: SOURCE_NOT_FOUND; THREAD_CHANGED when a part of
 * the source was deleted during the copy: begin another copy. */
apr_status_t agent_thread_copy_piece(bool *more, agent_db_pool_t *db,
                                     const agent_run_ref_t *ref,
                                     const agent_thread_copy_t *copy,
                                     agent_error_t **err, apr_pool_t *pool);

/* Abandons a copy, so that it is swept soon. copy: the new thread. */
apr_status_t agent_thread_copy_abandon(agent_db_pool_t *db,
                                       const agent_run_ref_t *copy,
                                       agent_error_t **err, apr_pool_t *pool);

#endif
