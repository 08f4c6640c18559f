/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control of each run. Before a line that goes into a dedicated batch, and
 * after each 256 KB, a run requests credit (`want`) and pauses until the
 * supervisor sends `go`: once its output is committed, and dedicated batches
 * have room for such a line, which is reserved as credit. Only that run waits;
 * others use the same pipe.
 *
 * Runners take turns, separately for lines of up to 1 MB and for longer ones;
 * the requests of one runner are granted in their order. In each of the two a
 * runner reserves at most a third of the room that the others leave, and all
 * runners of a deployment at most its share (../../lease/backlog.h). Credit
 * that is not used lapses, sooner when a runner without credit waits for that
 * room: README.md says for how long runs that request credit and do not use
 * it delay those of other runners.
 *
 * A long line that comes without credit, or after it lapsed, takes its turn as
 * if it had been requested; its runner is not read until then.
 */
#ifndef AGENT_SUPERVISOR_CREDIT_H
#define AGENT_SUPERVISOR_CREDIT_H

#include "../../lease/batch.h"
#include "../../lease/lease.h"
#include "../pool/runner.h"

/* Bytes of a run that may be uncommitted when it is sent `go`. */
#define AGENT_CREDIT_UNSAVED ((apr_size_t)64 * 1024)
/* Requests of a cancelled run that still extend its grace time. */
#define AGENT_CREDIT_LAST_REQUESTS 16

APR_RING_HEAD(agent_credit_classes_t, agent_credit_class_t);
typedef struct agent_credit_classes_t agent_credit_classes_t;

typedef struct agent_credit_queue_t {
    const agent_context_t *context;
    agent_batch_queue_t *batches;
    const agent_runner_table_t *runners;
    /* Classes in which a run waits; the next one to be served is first. */
    agent_credit_classes_t classes;
    /* The next free bytes in dedicated batches are reserved for a waiting run,
     * except the part for lines of up to AGENT_CREDIT_MEDIUM. */
    bool is_reserved;
    /* Leases with credit. */
    agent_credit_ring_t holders;
    /* When agent_credit_step() was called last, and when the next credit
     * lapses (core/clock.h). */
    apr_time_t stepped_at;
    apr_time_t lapse_at;
} agent_credit_queue_t;

/* The three pointers must stay valid as long as the queue. */
void agent_credit_init(agent_credit_queue_t *queue,
                       const agent_context_t *context,
                       agent_batch_queue_t *batches,
                       const agent_runner_table_t *runners);

/* Requests credit of `bytes`, at least 1, for the run of a lease; its earlier,
 * unused credit lapses. A lease that is not HELD gets `go` at once. Returns
 * false on a breach of the protocol: the run waits already, or has not read its
 * last `go`. So at most one `go` of a run is unread. The lease must have a
 * runner. */
bool agent_credit_request(agent_credit_queue_t *queue, agent_lease_t *lease,
                          apr_size_t bytes);

/* Whether a line of `length` bytes, without its newline, can be added to the
 * batches: the run has credit for it; or its deployment, and the run, have a
 * share for it (../../lease/backlog.h), and it is short and the run has less
 * than AGENT_BATCH_MAX_RUN uncommitted, or dedicated batches have room for
 * which no run waits. */
bool agent_credit_allows(const agent_credit_queue_t *queue,
                         const agent_lease_t *lease, apr_size_t length);

/* Holds a line of `length` bytes, without its newline, that cannot be added:
 * its runner is not read, and a long line waits for its turn. */
void agent_credit_hold(agent_credit_queue_t *queue, agent_lease_t *lease,
                       apr_size_t length);

/* Subtracts a line from the run's credit, if it has any; the line no longer
 * waits. bytes includes the newline. */
void agent_credit_spend(agent_credit_queue_t *queue, agent_lease_t *lease,
                        apr_size_t bytes);

/* Subtracts committed bytes from the run's uncommitted output. */
void agent_credit_save(agent_lease_t *lease, apr_size_t bytes);

/* Removes the request and the credit of a lease whose runner's side has ended.
 * Unused credit counts as lapsed, unless the run was asked to end. */
void agent_credit_remove(agent_credit_queue_t *queue, agent_lease_t *lease);

/* Removes the request and the credit of a lease that is no longer HELD; a run
 * that waits gets `go`. */
void agent_credit_release(agent_credit_queue_t *queue, agent_lease_t *lease);

/* Bytes in dedicated batches, and those reserved there by credit. */
apr_size_t agent_credit_used(const agent_credit_queue_t *queue);

/* Bytes requested by the runs of a runner that wait only for room in dedicated
 * batches, not for their own output to be committed. */
apr_size_t agent_credit_wanted(const agent_lease_group_t *group);

/* Whether half of the share of the lease's deployment in dedicated batches is
 * free, counting what the runs of its runner have reserved or wait for. Credit
 * of other runners does not count: it may never be used. */
bool agent_credit_is_half_free(const agent_credit_queue_t *queue,
                               const agent_lease_t *lease);

/* Sends `go` to the waiting runs whose output is committed and, for a long
 * line, whose line fits into dedicated batches. Ends credit that was not used
 * for too long (README.md). Called each iteration of the loop; returns when to
 * call it again at the latest. */
apr_time_t agent_credit_step(agent_credit_queue_t *queue);

#endif
