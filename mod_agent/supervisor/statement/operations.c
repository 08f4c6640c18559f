/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor asks of the database, by importance; see database.h. */
#include "../instance.h"

/* Each bounded in rows and bytes, so that a renewal waits for none of them. */
const agent_operation_t *const agent_operations[] = {
    &agent_renew_operation,    &agent_batch_operation,
    &agent_check_operation,    &agent_claim_operation,
    &agent_notify_operation,   &agent_list_operation,
    &agent_register_operation, NULL};

const agent_operation_t *const agent_bulk_operations[] = {
    &agent_lane_operation,          &agent_release_operation,
    &agent_start_operation,         &agent_bury_operation,
    &agent_sweep_operation,         &agent_partitions_operation,
    &agent_expire_operation,        &agent_blob_operation,
    &agent_webhook_claim_operation, &agent_webhook_save_operation,
    &agent_webhook_sweep_operation, NULL};
