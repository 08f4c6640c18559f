/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole supervisor: all parts, by value. Only main.c and instance.c know
 * it; each part has pointers to the parts that it uses, set once here.
 */
#ifndef AGENT_SUPERVISOR_INSTANCE_H
#define AGENT_SUPERVISOR_INSTANCE_H

#include "base/context.h"
#include "base/poll.h"
#include "base/schedule.h"
#include "runner/io/io.h"
#include "runner/pool/runner.h"
#include "runner/run/runs.h"
#include "shutdown.h"
#include "statement/check.h"
#include "statement/claim.h"
#include "statement/database.h"
#include "statement/failing.h"
#include "statement/notify.h"
#include "statement/read_parts.h"
#include "statement/release_runs.h"
#include "statement/save.h"
#include "statement/save_graphs.h"
#include "statement/set_limits.h"
#include "statement/start.h"
#include "statement/worker.h"
#include "webhook/delivery.h"
#include "webhook/webhook.h"

typedef struct agent_supervisor_t {
    agent_context_t *context;
    /* The process (main.c). */
    apr_time_t tick_at;
    int exit_code;
    int signal_fd;
    /* The parent at start; another one means that it has ended. */
    pid_t parent_pid;
    bool is_parent_lost;
    agent_poll_t poll;
    agent_poll_watch_t signals;
    agent_poll_watch_t life;
    agent_poll_watch_t wake;
    agent_poll_watch_t updates;
    agent_shutdown_t shutdown;
    /* Tables. */
    agent_schedule_t schedule;
    agent_runner_table_t runners;
    agent_runs_t runs;
    agent_delivery_table_t deliveries;
    agent_runner_io_t io;
    /* For short statements, for those that may be large or slow, and for
     * dedicated batches. */
    agent_database_t control;
    agent_database_t bulk;
    agent_database_t output;
    const agent_database_t *connections[4]; /* these, and NULL */
    /* Statements. */
    agent_worker_t worker;
    agent_lease_check_t check;
    agent_claim_t claim;
    agent_start_queue_t starts;
    agent_read_parts_t read_parts;
    agent_save_t save;
    agent_release_runs_t release;
    agent_notify_t notify;
    agent_save_graphs_t save_graphs;
    agent_failing_t failing;
    agent_set_limits_t limits;
    agent_webhook_t webhook;
} agent_supervisor_t;

/* Makes all parts, in a new pool (context->pool). Starts nothing. */
agent_supervisor_t *agent_instance_make(
    const agent_supervisor_config_t *config);

#endif
