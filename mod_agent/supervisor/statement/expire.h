/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes expired threads, unused values, and events of deleted runs, in short
 * transactions. */
#ifndef AGENT_SUPERVISOR_EXPIRE_H
#define AGENT_SUPERVISOR_EXPIRE_H

#include "notify.h"
#include "worker.h"

typedef struct agent_expire_t {
    agent_context_t *context;
    const agent_worker_t *worker;
    agent_notify_t *notify;
    apr_time_t due_at;
    apr_time_t sent_at;
    /* When values that no checkpoint uses are deleted. */
    apr_time_t blobs_at;
    /* When events of deleted runs are. */
    apr_time_t events_at;
} agent_expire_t;

extern const agent_operation_t agent_expire_operation;
extern const agent_operation_t agent_blob_operation;
extern const agent_operation_t agent_event_operation;

#endif
