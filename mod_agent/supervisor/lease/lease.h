/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases: the runs this worker holds.
 *
 * A lease has two sides that end independently: the database's (until its end
 * is committed or it is released or lost) and the runner's (until the runner
 * says `end` or dies). Lines about a run that we no longer hold are ignored: no
 * breach, since the runner may not know yet.
 */
#ifndef AGENT_SUPERVISOR_LEASE_H
#define AGENT_SUPERVISOR_LEASE_H

#include <apr_hash.h>

#include "../../core/uuid.h"
#include "../runner/credit.h"
#include "../runner/protocol.h"
#include "../ring.h"
#include "../types.h"

/* The database's side. */
typedef enum agent_lease_state_t {
    /* Ours: what the runner says is written. */
    AGENT_LEASE_HELD,
    /* Its end is in a batch that is not committed yet. */
    AGENT_LEASE_ENDED,
    /* It waits for release_runs. */
    AGENT_LEASE_RELEASING,
    /* Finished, released or lost: nothing is written any more. */
    AGENT_LEASE_GONE
} agent_lease_state_t;

/* Why the runner was asked to end the run. */
typedef enum agent_lease_cause_t {
    AGENT_CAUSE_NONE,
    AGENT_CAUSE_REQUEST,
    AGENT_CAUSE_DEADLINE,
    AGENT_CAUSE_DRAIN,
    AGENT_CAUSE_LOST
} agent_lease_cause_t;

struct agent_lease_t {
    /* In its runner's ring; in the free ring when unused. */
    APR_RING_ENTRY(agent_lease_t) link;
    agent_lease_key_t key;
    char account_id[AGENT_UUID_SIZE];
    char thread_id[AGENT_UUID_SIZE];
    int attempt;
    /* Length of its start line, an estimate until it is started; how often
     * asking for it alone failed. */
    apr_size_t start_bytes;
    int start_failures;
    /* The statement in flight asks for that line. */
    bool is_start_sent;
    /* The runner was given it. */
    bool is_started;
    /* Runs that may share its next runner, 0: no change; trials it passed. */
    int next_max_shared;
    int times_cleared;
    /* Its longest execution in seconds, 0: the worker's own limit. */
    apr_int64_t limit_sec;
    /* The database refused its output once. */
    bool is_refused;
    agent_lease_state_t state;
    agent_lease_cause_t cause;
    /* NULL once the runner's side has ended. */
    agent_runner_t *runner;
    /* Number of the next event; last number that is known to be committed. */
    apr_int64_t next_seq;
    apr_int64_t saved_seq;
    agent_credit_t credit;
    /* Monotonic. grace_at: end of patience; see agent_runner_may_answer(). */
    apr_time_t trial_end;
    apr_time_t deadline;
    apr_time_t grace_at;
};

APR_RING_HEAD(agent_lease_ring_t, agent_lease_t);
typedef struct agent_lease_ring_t agent_lease_ring_t;
typedef struct agent_lease_table_t {
    apr_hash_t *by_key;
    /* Memory of ended leases, used again. */
    agent_lease_ring_t unused;
    /* Leases in state HELD. */
    int held;
} agent_lease_table_t;

void agent_lease_init(agent_supervisor_t *sv);

/* A new lease, HELD, with its runner's side open unless runner is NULL. */
agent_lease_t *agent_lease_add(agent_supervisor_t *sv,
                               const agent_lease_key_t *key,
                               agent_runner_t *runner);

/* Its start line is handed over: the runner may end it, its time counts. */
void agent_lease_start(agent_supervisor_t *sv, agent_lease_t *lease);

/* Appends a lease to the JSON array that statements about leases take; the
 * caller appends the closing bracket. */
void agent_lease_print(agent_buffer_t *items, const agent_lease_key_t *key,
                       const char *account_id);

/* NULL when there is no such lease. */
agent_lease_t *agent_lease_find(agent_supervisor_t *sv,
                                const agent_lease_key_t *key);

/* The runner's side has ended; the lease may be gone afterwards. */
void agent_lease_detach(agent_supervisor_t *sv, agent_lease_t *lease);

/* The database's side moves on; with GONE the lease may be gone afterwards. */
void agent_lease_set_state(agent_supervisor_t *sv, agent_lease_t *lease,
                           agent_lease_state_t state);

/*
 * Asks the runner to end the run within cancel_grace, which begins anew while
 * the runner is not read or the run waits for credit. A run that has not begun
 * is detached and released, uncounted; if it was cancelled it ends with that.
 */
void agent_lease_cancel(agent_supervisor_t *sv, agent_lease_t *lease,
                        agent_lease_cause_t cause);

/* The database says that the run is not ours: forget it at once. */
void agent_lease_lose(agent_supervisor_t *sv, agent_lease_t *lease);

/* Gives the run back; counted: as an attempt. reason: a constant. */
void agent_lease_release(agent_supervisor_t *sv, agent_lease_t *lease,
                         bool counted, const char *reason);

/* Ends the run in error with as little as possible: nothing else that was tried
 * was done in time. error, message: constants. */
void agent_lease_give_up(agent_supervisor_t *sv, agent_lease_t *lease,
                         const char *error, const char *message);

/* Ends the run in the runner's place: an `error` event, then that status. */
void agent_lease_fail(agent_supervisor_t *sv, agent_lease_t *lease,
                      const char *status, const char *error,
                      const char *message);

/* Ends the run as `timeout`. */
void agent_lease_time_out(agent_supervisor_t *sv, agent_lease_t *lease);

/* The database's side of all leases is gone. */
void agent_lease_forget_all(agent_supervisor_t *sv);

/* Deadlines and patience; called each second. */
void agent_lease_tick(agent_supervisor_t *sv);

#endif
