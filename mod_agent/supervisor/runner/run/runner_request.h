/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of runs (`request`), and the replies. A run has one request at a
 * time, and asks for the next part of a result when it has read the last one:
 * this is what limits the unread input of a runner that reads slowly. Runners
 * take turns; the requests of one runner are answered in their order.
 *
 * The thread is always that of the run. Of the state a request can name nothing
 * else: the checkpoint is that of its start, and a cursor is accepted only
 * where the last reply left off. A request for records of the graph library is
 * answered when those that the run sent before are committed.
 *
 * Only requests to the store have long arguments. These are counted as lines of
 * output are, until the reply, and never wait for the runner: with them a
 * runner that does not read would keep others from sending theirs.
 */
#ifndef AGENT_SUPERVISOR_RUN_RUNNER_REQUEST_H
#define AGENT_SUPERVISOR_RUN_RUNNER_REQUEST_H

#include "../../lease/backlog.h"
#include "../../lease/lease.h"
#include "../pool/runner.h"
#include "../protocol/protocol.h"

/* Requests of one run that may be refused. */
#define AGENT_RUNNER_REQUEST_MAX_REFUSED 16

APR_RING_HEAD(agent_runner_request_classes_t, agent_runner_request_class_t);
typedef struct agent_runner_request_classes_t agent_runner_request_classes_t;

typedef struct agent_runner_request_queue_t {
    /* Runners of which a run waits; the next one to be served is first. */
    agent_runner_request_classes_t classes;
    /* Long arguments are counted with dedicated batches. */
    agent_backlog_table_t *backlogs;
    apr_pool_t *pool;
} agent_runner_request_queue_t;

/* pool: for the arguments of requests that wait, each in a pool below it. */
void agent_runner_request_init(agent_runner_request_queue_t *queue,
                               agent_backlog_table_t *backlogs,
                               apr_pool_t *pool);

/* Sets the checkpoint from which the run starts: borrowed, 36 bytes, or NULL
 * for none. */
void agent_runner_request_begin(agent_lease_t *lease,
                                const char *checkpoint_id);

/* Takes a line of type AGENT_LINE_REQUEST: queues it, or replies at once.
 * Returns NULL, or the breach of the protocol, a constant. The lease must have
 * a runner. */
const char *agent_runner_request_take(agent_runner_request_queue_t *queue,
                                      agent_lease_t *lease,
                                      const agent_line_t *line);

/* Lets a request that was sent after records of the run no longer wait for
 * them: they are committed (lease->records.saved). */
void agent_runner_request_save(agent_runner_request_queue_t *queue,
                               agent_lease_t *lease);

/* The first run, in the order of turns, that waits and that may_send() accepts;
 * NULL: none. Those of a runner wait for its first one, unless the statement
 * for that has failed. */
agent_lease_t *agent_runner_request_find(
    const agent_runner_request_queue_t *queue,
    bool (*may_send)(void *baton, const agent_lease_t *lease), void *baton);

/* Replies with a part of the result. cursor: where the next one begins, NULL
 * after the last one; a longer one than AGENT_RUNNER_REQUEST_CURSOR_SIZE is
 * refused. The run no longer waits; its runner's next turn is after those of
 * the others.
 */
void agent_runner_request_reply(agent_runner_request_queue_t *queue,
                                agent_lease_t *lease, const char *part,
                                const char *cursor);

/* Replies with an error: code is a word, message a sentence, both without
 * characters that JSON escapes. */
void agent_runner_request_refuse(agent_runner_request_queue_t *queue,
                                 agent_lease_t *lease, const char *code,
                                 const char *message);

/* Gives the other runs of the runner, and other runners, their turns first. */
void agent_runner_request_postpone(agent_runner_request_queue_t *queue,
                                   agent_lease_t *lease);

/* Refuses the request, if any, of a lease that is no longer HELD. */
void agent_runner_request_release(agent_runner_request_queue_t *queue,
                                  agent_lease_t *lease);

/* Discards the request of a lease whose runner's side has ended. */
void agent_runner_request_discard(agent_runner_request_queue_t *queue,
                                  agent_lease_t *lease);

#endif
