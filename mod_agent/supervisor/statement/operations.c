/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of operations; see operations.h. */
#include "operations.h"

#include "../webhook/webhook.h"
#include "check.h"
#include "claim.h"
#include "expire.h"
#include "notify.h"
#include "release.h"
#include "save.h"
#include "start.h"
#include "worker.h"

const agent_operation_t *const agent_operations[] = {
    &agent_renew_operation,    &agent_batch_operation,
    &agent_check_operation,    &agent_claim_operation,
    &agent_notify_operation,   &agent_list_operation,
    &agent_register_operation, NULL};

const agent_operation_t *const agent_bulk_operations[] = {
    &agent_lane_operation,          &agent_release_operation,
    &agent_start_operation,         &agent_mark_dead_operation,
    &agent_sweep_operation,         &agent_partitions_operation,
    &agent_expire_operation,        &agent_blob_operation,
    &agent_webhook_claim_operation, &agent_webhook_save_operation,
    &agent_webhook_sweep_operation, NULL};
