/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: one process for each host that claims runs from PostgreSQL,
 * hands them to runner processes and stores their output, in batches.
 *
 * It does not use httpd: mod_agent forks it in post_config, and any program can
 * call it, under any service manager.
 */
#ifndef AGENT_SUPERVISOR_H
#define AGENT_SUPERVISOR_H

#include "base/supervisor_config.h"

/*
 * Runs the supervisor until a signal or the end of life_fd stops it. To be
 * called in a separate process with one thread: it resets all signal handlers,
 * closes descriptors and changes its user. apr_initialize() must have been
 * called. Everything config points to must live until it returns.
 *
 * SIGUSR1: drain (no more claims; runs may finish until drain_timeout; in its
 * last third they are asked to stop at a checkpoint, at its end they are
 * cancelled, and are released; the attempt does not count). SIGTERM, SIGINT:
 * runs are released at once; the attempt does not count.
 *
 * Returns the exit status: 0 after one of these or the end of life_fd, 1 when
 * it cannot continue (start it again), 2 when it cannot start as configured.
 */
int agent_supervisor_main(const agent_supervisor_config_t *config);

#endif
