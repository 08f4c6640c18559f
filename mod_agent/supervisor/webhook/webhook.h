/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statements about webhooks. claim_webhooks leases due deliveries, which
 * are sent at once; save_webhooks stores their outcomes; sweep_webhooks deletes
 * those that were given up long ago.
 */
#ifndef AGENT_SUPERVISOR_WEBHOOK_H
#define AGENT_SUPERVISOR_WEBHOOK_H

#include "../statement/worker.h"
#include "delivery.h"

typedef struct agent_webhook_t {
    agent_context_t *context;
    agent_delivery_table_t *deliveries;
    const agent_worker_t *worker;
    agent_schedule_t *schedule;
    /* When outcomes may be saved, and when the next sweep is due. */
    apr_time_t save_at;
    apr_time_t sweep_at;
} agent_webhook_t;

extern const agent_operation_t agent_webhook_claim_operation;
extern const agent_operation_t agent_webhook_save_operation;
extern const agent_operation_t agent_webhook_sweep_operation;

#endif
