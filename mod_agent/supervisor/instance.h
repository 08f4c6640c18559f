/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's own struct: all its parts. */
#ifndef AGENT_SUPERVISOR_INSTANCE_H
#define AGENT_SUPERVISOR_INSTANCE_H

#include "context.h"
#include "drain.h"
#include "lease/batch.h"
#include "lease/lease.h"
#include "lease/release.h"
#include "poll.h"
#include "runner/credit.h"
#include "runner/runner.h"
#include "schedule.h"
#include "statement/claim.h"
#include "statement/database.h"
#include "statement/expire.h"
#include "statement/notify.h"
#include "statement/start.h"
#include "statement/worker.h"
#include "webhook/delivery.h"

struct agent_supervisor_t {
    agent_context_t *context;
    apr_time_t tick_at;
    int exit_code;
    int signal_fd;
    bool is_spawner_lost;
    /* The parent at start; another one means that it has ended. */
    pid_t parent_pid;
    bool is_parent_lost;
    bool is_wake_lost;
    agent_poll_t poll;
    agent_schedule_t schedule;
    /* For short statements, and for those that may be large or slow. */
    agent_database_t database;
    agent_database_t bulk;
    agent_worker_t worker;
    agent_claim_t claim;
    agent_start_queue_t starts;
    agent_expire_t expire;
    agent_notify_t notify;
    agent_lease_table_t leases;
    agent_batch_queue_t batches;
    agent_credit_queue_t credits;
    agent_release_queue_t releases;
    agent_runner_table_t runners;
    agent_delivery_table_t webhooks;
    agent_drain_t drain;
};

#endif
