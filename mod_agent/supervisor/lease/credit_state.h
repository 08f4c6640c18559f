/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of flow control: of a run, and of the runs of one runner. Bytes of
 * lines include their newlines. ../runner/run/credit.h decides.
 */
#ifndef AGENT_SUPERVISOR_LEASE_CREDIT_STATE_H
#define AGENT_SUPERVISOR_LEASE_CREDIT_STATE_H

#include <stdbool.h>

#include <apr_time.h>

#include "../base/ring.h"
#include "../base/types.h"

APR_RING_HEAD(agent_credit_ring_t, agent_lease_t);
typedef struct agent_credit_ring_t agent_credit_ring_t;

/* Requests for credit of the runs of one runner, of one size class. */
typedef struct agent_credit_class_t {
    /* In the queue, while a run waits. */
    APR_RING_ENTRY(agent_credit_class_t) link;
    /* Oldest first. */
    agent_credit_ring_t waiting;
    /* Found by agent_credit_step(): the first lease that waits only for room
     * in dedicated batches, and the bytes that all such leases requested. */
    agent_lease_t *next;
    apr_size_t wanted;
    /* Credit that is not used yet. */
    apr_size_t granted;
    /* Incremented when credit lapses unused, decremented when it is used. */
    int lapses;
} agent_credit_class_t;

/* Lines of up to 1 MB take turns separately from longer ones, so that a run
 * with little output does not wait for one with much. */
#define AGENT_CREDIT_CLASSES 2
#define AGENT_CREDIT_MEDIUM  ((apr_size_t)1024 * 1024)

typedef struct agent_credit_t {
    /* In its class while wanted is not 0; in the ring of holders while
     * granted is not 0. */
    APR_RING_ENTRY(agent_lease_t) link;
    agent_credit_class_t *class;
    /* Requested; 0: the run does not wait. */
    apr_size_t wanted;
    /* Its runner is not read until this line, which came without credit, has
     * room: no `go` is sent. */
    bool has_line;
    /* Reserved in dedicated batches until lapse_at; until yield_at when a
     * runner without credit waits for the room. */
    apr_size_t granted;
    bool is_medium; /* it was for a line of up to AGENT_CREDIT_MEDIUM */
    apr_time_t lapse_at;
    apr_time_t yield_at;
    /* Received from the runner and not committed. */
    apr_size_t unsaved;
    /* Requests since the run was cancelled. */
    int requests;
    /* The value of runner->written at the end of the last `go`: before that the
     * runner cannot have read it. */
    apr_uint64_t go_end;
} agent_credit_t;

#endif
