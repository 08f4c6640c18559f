/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credit. A run asks (`want`) before it says a line that goes into a lane, or
 * when it has said much; it goes on when it is told to (`go`): when the lanes
 * have room for that line, and the database has what it said. So only the run
 * waits, never what others say through the same pipe.
 */
#ifndef AGENT_SUPERVISOR_CREDIT_H
#define AGENT_SUPERVISOR_CREDIT_H

#include <stdbool.h>

#include "lease.h"

/* Of a run, that the database does not have yet when it is told to go on. */
#define AGENT_CREDIT_UNSAVED ((apr_size_t)64 * 1024)

APR_RING_HEAD(agent_credit_ring_t, agent_lease_t);
typedef struct agent_credit_ring_t agent_credit_ring_t;

typedef struct agent_credit_queue_t {
    /* Leases that have asked, in that order, and the sum of what they want. */
    agent_credit_ring_t waiting;
    apr_size_t wanted;
    /* Bytes that runs were told to say and have not said yet. */
    apr_size_t granted;
} agent_credit_queue_t;

void agent_credit_init(agent_supervisor_t *sv);

/* The run wants to say so many bytes. False: it has asked already. What is left
 * of an earlier credit is given up. */
bool agent_credit_ask(agent_supervisor_t *sv, agent_lease_t *lease,
                      apr_size_t bytes);

/* The run has said so many bytes: its credit is that much smaller. */
void agent_credit_spend(agent_supervisor_t *sv, agent_lease_t *lease,
                        apr_size_t bytes);

/* Nothing of the run is stored from now on: it keeps no room, and need not wait
 * for any. */
void agent_credit_release(agent_supervisor_t *sv, agent_lease_t *lease);

/* The runner's side has ended. */
void agent_credit_forget(agent_supervisor_t *sv, agent_lease_t *lease);

/* Bytes in the lanes and of credits. */
apr_size_t agent_credit_used(const agent_supervisor_t *sv);

/* A line that was not asked for has room, and no run waits for it. */
bool agent_credit_has_room(const agent_supervisor_t *sv);

/* Gives credit to those that wait and are saved, as far as the lanes have room.
 */
void agent_credit_step(agent_supervisor_t *sv);

#endif
