/* SPDX-License-Identifier: Apache-2.0 */
/* The table of leases: runs that this worker holds. Each has two sides that end
 * independently (../runner/run/run_end.h): the database's (its end is saved, or
 * it is released or lost), and the runner's (it sends `end` or dies). */
#ifndef AGENT_SUPERVISOR_LEASE_H
#define AGENT_SUPERVISOR_LEASE_H

#include <stdbool.h>
#include <apr_hash.h>

#include "../../core/buffer.h"
#include "../../core/uuid.h"
#include "../base/context.h"
#include "../base/ring.h"
#include "batch_size.h"
#include "credit_state.h"
#include "runner_request_state.h"

#define AGENT_SHARED_BY_ANY (-1) /* a value of next_max_shared */
/* A run under one lease. */
typedef struct agent_lease_key_t {
    char run_id[36]; /* lower case, no terminating NUL */
    apr_int32_t epoch;
} agent_lease_key_t;

/* The database's side. */
typedef enum agent_lease_state_t {
    AGENT_LEASE_HELD,      /* the runner's output is stored */
    AGENT_LEASE_ENDED,     /* its end is in a batch that is not committed */
    AGENT_LEASE_RELEASING, /* it waits for release_runs */
    AGENT_LEASE_GONE       /* nothing more is stored */
} agent_lease_state_t;
/* Why the runner was asked to end the run. */
typedef enum agent_lease_cause_t {
    AGENT_CAUSE_NONE,
    AGENT_CAUSE_REQUEST,  /* it was cancelled */
    AGENT_CAUSE_DEADLINE, /* it exceeded its time limit */
    /* It is to continue under another lease: a drain, the end of quarantine. */
    AGENT_CAUSE_DRAIN,
    /* The lease is lost, or its output is not stored. */
    AGENT_CAUSE_LOST
} agent_lease_cause_t;

APR_RING_HEAD(agent_lease_ring_t, agent_lease_t);
typedef struct agent_lease_ring_t agent_lease_ring_t;
/* The leases of one runner, a member of its struct. */
typedef struct agent_lease_group_t {
    agent_runner_t *runner;
    apr_interval_time_t run_timeout; /* of its pool; 0: no limit */
    apr_interval_time_t store_ttl;   /* of its pool; 0: none */
    agent_lease_ring_t leases;
    /* Leases in the ring; bytes of lines and states of those started. */
    int active;
    apr_size_t started_bytes;
    int used; /* start lines that were handed over, ever */
    agent_credit_class_t classes[AGENT_CREDIT_CLASSES];
    agent_runner_request_class_t requests[AGENT_RUNNER_REQUEST_CLASSES];
} agent_lease_group_t;

struct agent_lease_t {
    /* In its group's ring, or in the ring of unused leases. */
    APR_RING_ENTRY(agent_lease_t) link;
    agent_lease_key_t key;
    char deployment_id[AGENT_UUID_SIZE];
    char thread_id[AGENT_UUID_SIZE];
    int attempt;
    bool is_call;    /* it has no events */
    bool is_reading; /* a call whose only output is its end, with a value */
    int graph;       /* its number (runner/pool/graphs.h) */
    /* Length of its start line, first an estimate; failed compositions. */
    apr_size_t start_bytes;
    agent_retry_t start_retry;
    bool is_start_sent; /* the statement in flight composes the line */
    bool is_started;    /* the runner was given it */
    bool is_repeated;   /* a runner had not ended an earlier lease of the run */
    bool is_stopping;   /* it was sent `stop`: it may end as drained */
    /* How many runs may share its next runner. 0: as many as before;
     * AGENT_SHARED_BY_ANY: any number, since it has passed quarantine. */
    int next_max_shared;
    int quarantines_passed; /* see runner/quarantine.h */
    bool is_refused;        /* the database refused its output once */
    bool has_crashed;       /* the database did, at a statement about it */
    agent_lease_state_t state;
    agent_lease_cause_t cause;
    /* The group of its runner; NULL once the runner's side has ended. */
    agent_lease_group_t *group;
    /* Number of the next event; last number known to be committed. */
    apr_int64_t next_seq;
    apr_int64_t saved_seq;
    int saved_batches; /* those of more than events that are committed */
    agent_credit_t credit;
    agent_batch_size_t batch_size;
    agent_runner_request_t request;
    agent_record_t records;
    /* When it passes quarantine (core/clock.h), or AGENT_CLOCK_NEVER. */
    apr_time_t quarantine_end;
    apr_time_t deadline; /* when the run exceeds AgentRunTimeout */
    apr_time_t grace_at; /* when one that was asked to end must have ended */
};

typedef struct agent_lease_table_t {
    const agent_context_t *context;
    apr_hash_t *by_key;
    /* Memory of ended leases, used again. */
    agent_lease_ring_t unused;
    /* HELD leases, and those of them that wait for their start line. */
    int held;
    int waiting;
} agent_lease_table_t;

void agent_lease_init(agent_lease_table_t *table,
                      const agent_context_t *context);

void agent_lease_group_init(agent_lease_group_t *group, agent_runner_t *runner,
                            apr_interval_time_t run_timeout);

/* Adds a lease, HELD. group: that of its runner, or NULL. */
agent_lease_t *agent_lease_add(agent_lease_table_t *table,
                               const agent_lease_key_t *key,
                               agent_lease_group_t *group);

/* Returns NULL for none. */
agent_lease_t *agent_lease_find(const agent_lease_table_t *table,
                                const agent_lease_key_t *key);

/* The run's last lease before key that its runner has not ended, or NULL. */
agent_lease_t *agent_lease_find_earlier(const agent_lease_table_t *table,
                                        const agent_lease_key_t *key);

/* Whether the lease's runner still executes the run under an earlier lease. */
bool agent_lease_waits_for_previous(const agent_lease_t *lease);

/* Whether the lease is HELD and its runner was not given its start line yet. */
bool agent_lease_waits(const agent_lease_t *lease);

/* Begins the run's time limit: the runner was given its start line. */
void agent_lease_start(agent_lease_table_t *table, agent_lease_t *lease);

/* End the runner's side, and set the state of the database's side. The lease is
 * freed when the runner's side has ended and the state is GONE. */
void agent_lease_detach(agent_lease_table_t *table, agent_lease_t *lease);
void agent_lease_set_state(agent_lease_table_t *table, agent_lease_t *lease,
                           agent_lease_state_t state);

/* Appends a lease to a JSON array for a statement; items is empty before the
 * first one. The caller appends the closing bracket. */
void agent_lease_print(agent_buffer_t *items, const agent_lease_key_t *key,
                       const char *deployment_id);

#endif
