/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of a run and the replies that it waits for, members of its lease.
 * ../runner/run/runner_request.h keeps the queue, ../statement/read_parts.c
 * answers;
 * ../runner/run/ack.h replies to records.
 */
#ifndef AGENT_SUPERVISOR_LEASE_RUNNER_REQUEST_STATE_H
#define AGENT_SUPERVISOR_LEASE_RUNNER_REQUEST_STATE_H

#include <stdbool.h>

#include <apr_pools.h>

#include "../../core/uuid.h"
#include "../base/ring.h"
#include "../base/types.h"
#include "patience.h"

/* Records of one run whose reply was not sent or not written to the pipe. */
#define AGENT_ACK_MAX 16
/* The longest cursor, with its NUL. */
#define AGENT_RUNNER_REQUEST_CURSOR_SIZE 128
/* The longest text of arguments: a hundred digests; of a request to the store.
 */
#define AGENT_RUNNER_REQUEST_MAX_ARGS  ((apr_size_t)4096)
#define AGENT_RUNNER_REQUEST_MAX_STORE ((apr_size_t)4 * 1024 * 1024)

typedef enum agent_runner_request_op_t {
    /* The state from which the run starts. */
    AGENT_RUNNER_REQUEST_STATE,
    /* Records of the graph library in the run's thread. */
    AGENT_RUNNER_REQUEST_CHECKPOINT,
    AGENT_RUNNER_REQUEST_CHECKPOINTS,
    AGENT_RUNNER_REQUEST_DELTA,
    AGENT_RUNNER_REQUEST_BLOBS,
    /* Items of the deployment's store. */
    AGENT_RUNNER_REQUEST_STORE,
    AGENT_RUNNER_REQUEST_OPS
} agent_runner_request_op_t;

APR_RING_HEAD(agent_runner_request_ring_t, agent_lease_t);
typedef struct agent_runner_request_ring_t agent_runner_request_ring_t;

/* Of a runner: requests that are answered when it has room for a part, and
 * those with long arguments, which never wait for it. */
#define AGENT_RUNNER_REQUEST_CLASSES 2

typedef struct agent_runner_request_class_t {
    /* In the queue, while a run waits. */
    APR_RING_ENTRY(agent_runner_request_class_t) link;
    /* The runs that wait for a reply, oldest request first. */
    agent_runner_request_ring_t waiting;
} agent_runner_request_class_t;

typedef struct agent_runner_request_t {
    /* In its runner's ring while is_queued. */
    APR_RING_ENTRY(agent_lease_t) link;
    /* The run waits for the reply. */
    bool is_waiting;
    /* Its records up to number `after` are committed: it may be answered. */
    bool is_queued;
    apr_int64_t after;
    /* The statement in flight answers it. */
    bool is_sent;
    agent_runner_request_op_t op;
    /* The runner's own number for it. */
    apr_int64_t id;
    /* JSON text, in pool, while the run waits; NULL: none. */
    const char *args;
    apr_pool_t *pool;
    /* Bytes of arguments longer than AGENT_RUNNER_REQUEST_MAX_ARGS, else 0. */
    apr_size_t long_bytes;
    /* Where the part begins; "": the first one. */
    char cursor[AGENT_RUNNER_REQUEST_CURSOR_SIZE];
    /* The value of runner->written at the end of the last reply: before that
     * the runner cannot have read it. */
    apr_uint64_t reply_end;
    /* Statements for this request that failed; requests that were refused. */
    agent_retry_t retry;
    int refused;
    /* The checkpoint from which the run starts; "": it has no state. Bytes of
     * the state, approximate. */
    char checkpoint_id[AGENT_UUID_SIZE];
    apr_size_t state_bytes;
    /* The part of this state that comes next; "" at its beginning. The last one
     * was sent. */
    char state_cursor[AGENT_RUNNER_REQUEST_CURSOR_SIZE];
    bool is_done;
} agent_runner_request_t;

/* Records of the graph library that a run sent. */
typedef struct agent_record_t {
    /* Their number; the number of the last one known to be committed. */
    apr_int64_t sent;
    apr_int64_t saved;
    /* With `ack`: not committed; replied to, and perhaps not read. */
    int open;
    int unread;
    /* The values of runner->written at the ends of those that are unread, a
     * ring that begins at first_unread. */
    apr_uint64_t reply_ends[AGENT_ACK_MAX];
    int first_unread;
} agent_record_t;

#endif
