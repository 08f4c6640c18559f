/* SPDX-License-Identifier: Apache-2.0 */
/* The statements about webhooks: claim_webhooks, save_webhooks,
 * sweep_webhooks. */
#ifndef AGENT_SUPERVISOR_WEBHOOK_H
#define AGENT_SUPERVISOR_WEBHOOK_H

#include "../statement/database.h"

extern const agent_operation_t agent_webhook_claim_operation;
extern const agent_operation_t agent_webhook_save_operation;
extern const agent_operation_t agent_webhook_sweep_operation;

#endif
