/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from models and tools that is not in a state yet, of all runs. While it
 * is too much, or memory is short, one run receives more, until its node is
 * done; other runs with much of it pause.
 */
#ifndef AGENT_RUNNER_PENDING_H
#define AGENT_RUNNER_PENDING_H

#include <stdbool.h>
#include <stddef.h>

/* The pending text above which a run pauses for others. */
#define RUNNER_PENDING_SMALL ((size_t)64 * 1024)

typedef struct runner_pending_t {
    /* Bytes of all runs together, and their limit. */
    size_t bytes;
    size_t bytes_max;
    /* The runs' trees and backlogs have reached their limit of memory. */
    bool is_memory_short;
    /* The bytes of the run that may receive more; NULL for none. */
    const size_t *receiver;
} runner_pending_t;

/* Sets a run's bytes, which belong to the run. */
void runner_pending_set(runner_pending_t *pending, size_t *bytes, size_t now);

/* Whether the run must not receive more. */
bool runner_pending_is_paused(runner_pending_t *pending, const size_t *bytes);

#endif
