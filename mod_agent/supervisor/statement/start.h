/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compose_starts: the lines that start runs. A claim returns those of runs with
 * little state. The others are composed later, when their runner has room for
 * them: no row is locked while the database composes a large line, and the
 * memory of this process does not depend on the size of states.
 */
#ifndef AGENT_SUPERVISOR_START_H
#define AGENT_SUPERVISOR_START_H

#include "../base/adaptive_limit.h"
#include "../runner/run/runs.h"
#include "worker.h"

/* Bytes that a claim composes while it holds its locks. */
#define AGENT_START_CLAIM_BYTES 1000000
/* Bytes that one statement composes; a single line may be longer. */
#define AGENT_START_BYTES 8000000
/* With more unread input than this a runner gets no line that is longer than
 * AGENT_START_SMALL_BYTES: such a line delays those after it. */
#define AGENT_START_RUNNER_BYTES 1000000
/* Unread input of all runners together. A runner may have a third of what the
 * others leave; one that has read all may get a line beyond that. */
#define AGENT_START_ALL_BYTES 48000000
/*
 * A runner keeps the state of a run, as text or as a tree many times as large,
 * until the run ends: the start lines and the states of its unfinished runs
 * together are at most this part of AgentRunnerMemory. One run may always
 * start, and so may one whose line is at most an equal share of the slots: with
 * these the sum is at most twice as much, half of what the built-in runner can
 * queue.
 */
#define AGENT_START_MEMORY_PART 16
/* Used instead of AgentRunnerMemory when that is 0 (no limit). */
#define AGENT_START_MEMORY_DEFAULT ((apr_size_t)1024 * 1024 * 1024)
/* A start line of at most this is short: it may overtake longer ones. */
#define AGENT_START_SMALL_BYTES ((apr_size_t)64 * 1024)
/* Bytes of memory that one start line may take in its runner as a JSON tree
 * (core/scan.h). The built-in graph allows a state of 256 MB and an input of
 * 96 MB; the rest is a margin. */
#define AGENT_START_WEIGHT ((size_t)384 * 1024 * 1024)

typedef struct agent_start_queue_t {
    const agent_worker_t *worker;
    const agent_runner_table_t *runners;
    agent_runs_t *runs;
    /* Lines that one statement may compose, and those of the one in flight. */
    agent_adaptive_limit_t limit;
    int in_flight;
    /* No statement is sent before. */
    apr_time_t retry_at;
    /* The lines that were composed lately, by their bytes. */
    agent_patience_saved_t composed;
} agent_start_queue_t;

extern const agent_operation_t agent_start_operation;

/* The pointers must be set. */
void agent_start_init(agent_start_queue_t *queue);

/* Called when a connection is up again: ends a run whose line crashed the
 * database each time when it was composed (retry.h). */
void agent_start_on_connected(agent_start_queue_t *queue);

/* How many bytes of start lines a claim may compose now. */
apr_size_t agent_start_claim_bytes(const agent_runner_table_t *table);

/* Whether `bytes` may be added to the unread input of a runner: the rule
 * for long lines above. */
bool agent_start_has_room(const agent_runner_table_t *table,
                          const agent_runner_t *runner, apr_size_t bytes);

/* Whether the line of a lease that was just claimed can be handed over at once:
 * its runner has room for it, and no other run waits for that room. */
bool agent_start_fits_now(const agent_runs_t *runs, const agent_lease_t *lease);

/* Appends the start line to the input of the lease's runner and starts the
 * run's time limit. A line that no runner can process ends the run in error
 * instead. */
void agent_start_hand_over(agent_runs_t *runs, agent_lease_t *lease,
                           const char *start);

#endif
