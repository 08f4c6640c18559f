/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control of each run by credit. Before a line that goes into a lane, and
 * after each 256 KB, a run asks for credit (`want`) and pauses. It gets it
 * (`go`) when the lanes have room for what it asked for and its short lines are
 * saved. Only that run waits; others go on through the same pipe.
 */
#ifndef AGENT_SUPERVISOR_CREDIT_H
#define AGENT_SUPERVISOR_CREDIT_H

#include <stdbool.h>

#include "lease.h"

/* Bytes of a run in shared batches that may be unsaved when it gets credit. */
#define AGENT_CREDIT_UNSAVED ((apr_size_t)64 * 1024)

APR_RING_HEAD(agent_credit_ring_t, agent_lease_t);
typedef struct agent_credit_ring_t agent_credit_ring_t;

typedef struct agent_credit_queue_t {
    /* Leases that wait for credit, oldest first; bytes that they asked for. */
    agent_credit_ring_t waiting;
    apr_size_t wanted;
    /* Bytes of credit that runs have and did not use yet. */
    apr_size_t granted;
} agent_credit_queue_t;

void agent_credit_init(agent_supervisor_t *sv);

/* Asks for credit of at least 1 byte; what is left of an earlier one lapses. A
 * lease that is not HELD is told to go on at once. False, a breach of the
 * protocol: it waits already. The lease must have a runner. */
bool agent_credit_ask(agent_supervisor_t *sv, agent_lease_t *lease,
                      apr_size_t bytes);

/* Takes the bytes of a line, newline included, from the run's credit, as far as
 * it has any. */
void agent_credit_spend(agent_supervisor_t *sv, agent_lease_t *lease,
                        apr_size_t bytes);

/* The lease is no longer HELD, so nothing more of the run is stored: it loses
 * its credit, and is told to go on if it waits. */
void agent_credit_release(agent_supervisor_t *sv, agent_lease_t *lease);

/* The runner's side has ended: the lease loses its credit and waits no more. */
void agent_credit_forget(agent_supervisor_t *sv, agent_lease_t *lease);

/* Bytes in the lanes, and those reserved there by credit. */
apr_size_t agent_credit_used(const agent_supervisor_t *sv);

/* Whether the lanes take a line without credit: not while a run waits for some.
 */
bool agent_credit_has_room(const agent_supervisor_t *sv);

/* Gives credit to leases that wait, oldest first, while the lanes have room;
 * passes over those whose short lines are not saved. Called each turn. */
void agent_credit_step(agent_supervisor_t *sv);

#endif
