/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control of each run. Before a line that goes into a lane, and after each
 * 256 KB, a run requests credit (`want`) and pauses until the supervisor sends
 * `go`: once its output is committed, and the lanes have room for such a line,
 * which is reserved as credit. Only that run waits; others use the same pipe.
 *
 * Runners take turns, each in the order of its requests, for lines of up to 1
 * MB and for longer ones apart. In neither a runner reserves more than a third
 * of the room that the others leave. Credit that is not used lapses, sooner
 * when a runner without credit waits for that room: runs that request credit
 * and do not use it delay those of other runners for 2 s at most.
 *
 * A long line that comes without credit, or after it lapsed, takes its turn as
 * if it had been requested; its runner is not read until then.
 */
#ifndef AGENT_SUPERVISOR_CREDIT_H
#define AGENT_SUPERVISOR_CREDIT_H

#include "../lease/batch.h"
#include "../lease/lease.h"
#include "runner.h"

/* Bytes of a run that may be uncommitted when it is sent `go`. */
#define AGENT_CREDIT_UNSAVED ((apr_size_t)64 * 1024)
/* Requests of a cancelled run that still extend its grace time. */
#define AGENT_CREDIT_LAST_REQUESTS 16

APR_RING_HEAD(agent_credit_turns_t, agent_credit_turn_t);
typedef struct agent_credit_turns_t agent_credit_turns_t;

typedef struct agent_credit_queue_t {
    const agent_context_t *context;
    const agent_batch_queue_t *batches;
    const agent_runner_table_t *runners;
    /* Those with runs that wait; the next one to be served is first. */
    agent_credit_turns_t turns;
    /* The next room in the lanes is for a run that waits. */
    bool is_room_taken;
    /* Leases with credit; bytes of it. */
    agent_credit_ring_t given;
    apr_size_t granted;
    /* When the queue stepped last, and when the next credit lapses. */
    apr_time_t stepped_at;
    apr_time_t lapse_at;
} agent_credit_queue_t;

void agent_credit_init(agent_credit_queue_t *queue,
                       const agent_context_t *context,
                       const agent_batch_queue_t *batches,
                       const agent_runner_table_t *runners);

/* The run of a lease requests credit for that many bytes, at least 1; an
 * earlier credit that it did not use lapses. A lease that is not HELD gets `go`
 * at once. False, a breach of the protocol: it waits already, or has not read
 * its last `go`; so at most one `go` of a run is unread. The lease must have a
 * runner. */
bool agent_credit_ask(agent_credit_queue_t *queue, agent_lease_t *lease,
                      apr_size_t bytes);

/* Whether a line of that length (without its newline) can be added to the
 * batches: the run has credit for it; or it is short and the run has less than
 * AGENT_BATCH_MAX_RUN uncommitted; or the lanes have room for which no run
 * waits. */
bool agent_credit_takes(const agent_credit_queue_t *queue,
                        const agent_lease_t *lease, apr_size_t length);

/* A line of that length (without its newline) cannot be added: its runner is
 * not read, and a long line waits for its turn. */
void agent_credit_hold(agent_credit_queue_t *queue, agent_lease_t *lease,
                       apr_size_t length);

/* Takes the bytes of a line, newline included, from the run's credit, as far as
 * it has any; the line no longer waits. */
void agent_credit_spend(agent_credit_queue_t *queue, agent_lease_t *lease,
                        apr_size_t bytes);

/* So many bytes of the run are committed. */
void agent_credit_save(agent_lease_t *lease, apr_size_t bytes);

/* The runner's side has ended: the lease loses its credit and its request.
 * Credit that it did not use lapses, unless it was asked to end. */
void agent_credit_forget(agent_credit_queue_t *queue, agent_lease_t *lease);

/* The same for a lease that is no longer HELD; a run that waits gets `go`. */
void agent_credit_release(agent_credit_queue_t *queue, agent_lease_t *lease);

/* Bytes in the lanes, and those reserved there by credit. */
apr_size_t agent_credit_used(const agent_credit_queue_t *queue);

/* Bytes requested by those runs of a runner that wait only for room in the
 * lanes, not for their own output to be committed. */
apr_size_t agent_credit_wanted(const agent_lease_group_t *group);

/* Bytes in the lanes, and those that the runs of a runner reserved or wait for.
 * Credit of other runners does not count, since it may never be used. */
apr_size_t agent_credit_load(const agent_credit_queue_t *queue,
                             const agent_lease_group_t *group);

/* Whether the lanes take a line without credit: not while the next room there
 * is for a run that waits. */
bool agent_credit_has_room(const agent_credit_queue_t *queue);

/* Sends `go` to leases that wait: their output is committed, and they want no
 * long line or one that the lanes have room for. Credit that is not used lapses
 * after 10 s (timing.credit); after 2 s when it takes the room for which a
 * runner without credit waits; after half as long for each time that credit of
 * the runner was not used before, at least a 64th. Called each turn of the
 * loop; returns when to be called again at the latest. */
apr_time_t agent_credit_step(agent_credit_queue_t *queue);

#endif
