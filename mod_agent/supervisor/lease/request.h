/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of a run, a member of its lease. ../runner/request.h keeps the
 * queue, ../statement/read_state.c answers.
 */
#ifndef AGENT_SUPERVISOR_LEASE_REQUEST_H
#define AGENT_SUPERVISOR_LEASE_REQUEST_H

#include <stdbool.h>

#include "../../core/uuid.h"
#include "../ring.h"
#include "../types.h"

/* The longest cursor, with its NUL. */
#define AGENT_REQUEST_CURSOR_SIZE 128

APR_RING_HEAD(agent_request_ring_t, agent_lease_t);
typedef struct agent_request_ring_t agent_request_ring_t;

/* The runs of one runner that wait for a reply, oldest request first. */
typedef struct agent_request_class_t {
    /* In the queue, while a run waits. */
    APR_RING_ENTRY(agent_request_class_t) link;
    agent_request_ring_t waiting;
} agent_request_class_t;

typedef struct agent_request_t {
    /* In its runner's ring while it waits. */
    APR_RING_ENTRY(agent_lease_t) link;
    bool is_waiting;
    /* The statement in flight answers it. */
    bool is_sent;
    /* The runner's own number for it. */
    apr_int64_t id;
    /* The value of runner->written at the end of the last reply: before that
     * the runner cannot have read it. */
    apr_uint64_t reply_end;
    /* Statements for this request that failed; requests that were refused. */
    int failures;
    int refused;
    /* The checkpoint from which the run starts; "": it has no state. Bytes of
     * the state, approximate. */
    char checkpoint_id[AGENT_UUID_SIZE];
    apr_size_t state_bytes;
    /* The part of the state that comes next; "" at its beginning. */
    char cursor[AGENT_REQUEST_CURSOR_SIZE];
    /* The last part was sent. */
    bool is_done;
} agent_request_t;

#endif
