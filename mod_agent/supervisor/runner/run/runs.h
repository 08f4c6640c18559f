/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs that this worker holds: the tables that a run passes through. They
 * are one struct because the end of a run changes several of them together
 * (run_end.h).
 */
#ifndef AGENT_SUPERVISOR_RUNS_H
#define AGENT_SUPERVISOR_RUNS_H

#include "../../lease/batch.h"
#include "../../lease/lease.h"
#include "../../lease/release.h"
#include "credit.h"
#include "runner_request.h"

struct agent_runs_t {
    agent_context_t *context;
    agent_lease_table_t leases;
    /* Output that is not committed, and credit for more. */
    agent_batch_queue_t batches;
    agent_credit_queue_t credits;
    agent_release_queue_t releases;
    agent_runner_request_queue_t requests;
};

#endif
