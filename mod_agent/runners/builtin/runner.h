/* SPDX-License-Identifier: Apache-2.0 */
/* The runner: serving the supervisor over two descriptors. */
#ifndef AGENT_RUNNER_RUNNER_H
#define AGENT_RUNNER_RUNNER_H

#include <apr_pools.h>

#define RUNNER_SLOTS_DEFAULT 100
#define RUNNER_SLOTS_MAX     10000

/*
 * Executes at most slots runs at once until a drain, the end of input or a
 * breach of the protocol. Returns the exit code: 0 after a drain or the end of
 * input, 1 after a system error, 2 after a breach.
 */
int runner_serve(int in_fd, int out_fd, int slots, apr_pool_t *pool);

#endif
