/* SPDX-License-Identifier: Apache-2.0 */
/* The runner: its graphs, its runs and the loop that serves them all. */
#ifndef AGENT_RUNNER_RUNNER_H
#define AGENT_RUNNER_RUNNER_H

#include <apr_pools.h>

#define RUNNER_PROTOCOL      1
#define RUNNER_SLOTS_DEFAULT 100
#define RUNNER_SLOTS_MAX     10000

/*
 * Serves the supervisor over the two descriptors until it says so, goes away
 * or breaks the protocol; at most slots runs at once. Returns the exit code:
 * 0 after drain or the end of input, 1 after a failure of the system, 2 after
 * a breach of the protocol.
 */
int runner_serve(int in_fd, int out_fd, int slots, apr_pool_t *pool);

#endif
