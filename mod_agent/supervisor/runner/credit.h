/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control of each run. Before a line that goes into a lane, and after each
 * 256 KB, a run asks (`want`) and pauses until it is told to go on (`go`): when
 * what it sent is saved, and the lanes have room for such a line, which is kept
 * for it as credit. Only that run waits; others go on through the same pipe.
 */
#ifndef AGENT_SUPERVISOR_CREDIT_H
#define AGENT_SUPERVISOR_CREDIT_H

#include <stdbool.h>

#include <apr_ring.h>

#include "../types.h"

/* Bytes of a run that may be unsaved when it is told to go on. */
#define AGENT_CREDIT_UNSAVED ((apr_size_t)64 * 1024)
/* So often a run that is to end may ask without losing its patience. */
#define AGENT_CREDIT_LAST_REQUESTS 16

/* Of one lease. All bytes are those of lines with their newlines. */
typedef struct agent_credit_t {
    /* In one of the two rings while wanted or granted is not 0. */
    APR_RING_ENTRY(agent_lease_t) link;
    /* Asked for, 0: it does not wait. */
    apr_size_t wanted;
    /* Kept for it in the lanes; not after lapse_at. */
    apr_size_t granted;
    apr_time_t lapse_at;
    /* Sent and not saved. */
    apr_size_t unsaved;
    /* How often it asked since it was told to end. */
    int requests;
} agent_credit_t;

APR_RING_HEAD(agent_credit_ring_t, agent_lease_t);
typedef struct agent_credit_ring_t agent_credit_ring_t;

typedef struct agent_credit_queue_t {
    /* Leases that wait, oldest first; bytes of the long lines they asked for.
     */
    agent_credit_ring_t waiting;
    apr_size_t wanted;
    /* Leases with credit, oldest first; bytes of it. */
    agent_credit_ring_t given;
    apr_size_t granted;
} agent_credit_queue_t;

void agent_credit_init(agent_supervisor_t *sv);

/* The run of a lease asks to send so many bytes, at least 1; what is left of an
 * earlier credit lapses. A lease that is not HELD is told to go on at once.
 * False, a breach of the protocol: it waits already. The lease must have a
 * runner. */
bool agent_credit_ask(agent_supervisor_t *sv, agent_lease_t *lease,
                      apr_size_t bytes);

/* Takes the bytes of a line, newline included, from the run's credit, as far as
 * it has any. */
void agent_credit_spend(agent_supervisor_t *sv, agent_lease_t *lease,
                        apr_size_t bytes);

/* The runner's side has ended: the lease loses its credit and waits no more. */
void agent_credit_forget(agent_supervisor_t *sv, agent_lease_t *lease);

/* The same for a lease that is no longer HELD, of which nothing more is stored:
 * if it waits it is told to go on. */
void agent_credit_release(agent_supervisor_t *sv, agent_lease_t *lease);

/* Bytes in the lanes, and those reserved there by credit. */
apr_size_t agent_credit_used(const agent_supervisor_t *sv);

/* Whether the lanes take a line without credit: not while a run waits for room
 * there. */
bool agent_credit_has_room(const agent_supervisor_t *sv);

/* Tells leases that wait to go on, oldest first: those whose output is saved,
 * and who want no long line or one that the lanes have room for. Credit that a
 * run did not use for 10 s lapses. Called each turn. */
void agent_credit_step(agent_supervisor_t *sv);

#endif
