/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of the supervisor, for its parts. One thread, no locks. */
#ifndef AGENT_SUPERVISOR_STATE_H
#define AGENT_SUPERVISOR_STATE_H

#include "lease/batch.h"
#include "statement/check.h"
#include "statement/claim.h"
#include "runner/credit.h"
#include "statement/database.h"
#include "drain.h"
#include "statement/expire.h"
#include "lease/lease.h"
#include "statement/notify.h"
#include "poll.h"
#include "process/process.h"
#include "runner/protocol.h"
#include "lease/release.h"
#include "report.h"
#include "runner/runner.h"
#include "runner/watch.h"
#include "process/spawner.h"
#include "statement/start.h"
#include "supervisor.h"
#include "webhook/webhook.h"
#include "statement/worker.h"

struct agent_supervisor_t {
    const agent_supervisor_config_t *config;
    /* config's, with the defaults filled in. */
    agent_supervisor_timing_t timing;
    apr_pool_t *pool;
    /* CLOCK_MONOTONIC when this turn of the loop began. */
    apr_time_t now;
    apr_time_t tick_at;
    agent_mode_t mode;
    int exit_code;
    int signal_fd;
    bool is_spawner_lost;
    /* Whose child this process was when it began. */
    pid_t parent_pid;
    bool is_parent_lost;
    bool is_wake_lost;
    agent_spawner_t spawner;
    agent_poll_t poll;
    agent_report_t report;
    /* For what is short, and for what may be large or slow. */
    agent_database_t database;
    agent_database_t bulk;
    agent_worker_t worker;
    agent_claim_t claim;
    agent_start_queue_t starts;
    agent_check_t check;
    agent_expire_t expire;
    agent_notify_t notify;
    agent_lease_table_t leases;
    agent_batch_queue_t batches;
    agent_credit_queue_t credits;
    agent_release_queue_t releases;
    agent_runner_table_t runners;
    agent_webhook_table_t webhooks;
    agent_drain_t drain;
};

#endif
