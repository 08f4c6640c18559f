/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor asks of the database, by importance; see database.h. */
#include "state.h"

const agent_operation_t *const agent_operations[] = {
    &agent_renew_operation,         &agent_batch_operation,
    &agent_release_operation,       &agent_check_operation,
    &agent_claim_operation,         &agent_notify_operation,
    &agent_list_operation,          &agent_bury_operation,
    &agent_register_operation,      &agent_sweep_operation,
    &agent_partitions_operation,    &agent_expire_operation,
    &agent_webhook_claim_operation, &agent_webhook_save_operation,
    &agent_webhook_sweep_operation, NULL};
