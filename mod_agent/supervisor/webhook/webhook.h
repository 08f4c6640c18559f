/* SPDX-License-Identifier: Apache-2.0 */
/* The statements about webhooks: claim_webhooks, save_webhooks,
 * sweep_webhooks. */
#ifndef AGENT_SUPERVISOR_WEBHOOK_H
#define AGENT_SUPERVISOR_WEBHOOK_H

#include "../statement/worker.h"
#include "delivery.h"

typedef struct agent_webhook_t {
    agent_context_t *context;
    agent_delivery_table_t *deliveries;
    const agent_worker_t *worker;
    agent_schedule_t *schedule;
    /* Rows that the claim in flight asked for. */
    int claim_limit;
    apr_time_t save_at;
    apr_time_t sweep_at;
} agent_webhook_t;

extern const agent_operation_t agent_webhook_claim_operation;
extern const agent_operation_t agent_webhook_save_operation;
extern const agent_operation_t agent_webhook_sweep_operation;

#endif
