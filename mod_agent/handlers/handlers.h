/* SPDX-License-Identifier: Apache-2.0 */
/* The endpoints of all handler names. Each reads its request, calls one
 * function of model/ and sends the response; routes.c maps method and path to
 * it. */
#ifndef AGENT_HANDLERS_H
#define AGENT_HANDLERS_H

#include "../http/router.h"

/* For agent_router_register(). */
extern const agent_api_t agent_apis[];

/* Creates a child's count of requests to create an account, in pool. */
apr_status_t agent_sign_up_start(agent_child_t *child, apr_pool_t *pool);

int agent_handle_assistant_get(agent_call_t *call);
int agent_handle_assistant_graph(agent_call_t *call);
int agent_handle_assistant_schemas(agent_call_t *call);
int agent_handle_assistant_subgraphs(agent_call_t *call);
int agent_handle_assistant_search(agent_call_t *call);
int agent_handle_assistant_count(agent_call_t *call);
int agent_handle_assistant_create(agent_call_t *call);
int agent_handle_assistant_update(agent_call_t *call);
int agent_handle_assistant_delete(agent_call_t *call);
int agent_handle_assistant_versions(agent_call_t *call);
int agent_handle_assistant_latest(agent_call_t *call);

int agent_handle_thread_create(agent_call_t *call);
int agent_handle_thread_storage(agent_call_t *call);
int agent_handle_thread_search(agent_call_t *call);
int agent_handle_thread_count(agent_call_t *call);
int agent_handle_thread_prune(agent_call_t *call);
int agent_handle_thread_get(agent_call_t *call);
int agent_handle_thread_update(agent_call_t *call);
int agent_handle_thread_delete(agent_call_t *call);
int agent_handle_thread_copy(agent_call_t *call);
int agent_handle_state_get(agent_call_t *call);
int agent_handle_state_at(agent_call_t *call);
int agent_handle_state_checkpoint(agent_call_t *call);
int agent_handle_state_update(agent_call_t *call);
int agent_handle_history_get(agent_call_t *call);
int agent_handle_history_post(agent_call_t *call);
int agent_handle_thread_stream(agent_call_t *call);

int agent_handle_run_create(agent_call_t *call);
int agent_handle_run_create_wait(agent_call_t *call);
int agent_handle_run_create_stream(agent_call_t *call);
int agent_handle_run_list(agent_call_t *call);
int agent_handle_run_get(agent_call_t *call);
int agent_handle_run_delete(agent_call_t *call);
int agent_handle_run_cancel(agent_call_t *call);
int agent_handle_run_join(agent_call_t *call);
int agent_handle_run_stream(agent_call_t *call);

int agent_handle_stateless_join(agent_call_t *call);
int agent_handle_stateless_stream(agent_call_t *call);

int agent_handle_run_batch(agent_call_t *call);
int agent_handle_run_cancel_many(agent_call_t *call);

int agent_handle_item_put(agent_call_t *call);
int agent_handle_item_get(agent_call_t *call);
int agent_handle_item_delete(agent_call_t *call);
int agent_handle_item_search(agent_call_t *call);
int agent_handle_namespace_list(agent_call_t *call);

int agent_handle_sign_up(agent_call_t *call);
int agent_handle_account_get(agent_call_t *call);
int agent_handle_account_update(agent_call_t *call);
int agent_handle_account_delete(agent_call_t *call);
int agent_handle_deletion_get(agent_call_t *call);
int agent_handle_account_export(agent_call_t *call);
int agent_handle_usage_get(agent_call_t *call);
int agent_handle_audit_list(agent_call_t *call);
int agent_handle_addresses(agent_call_t *call);

int agent_handle_key_describe(agent_call_t *call);
int agent_handle_key_list(agent_call_t *call);
int agent_handle_key_create(agent_call_t *call);
int agent_handle_key_revoke(agent_call_t *call);
int agent_handle_key_rotate(agent_call_t *call);

int agent_handle_ok(agent_call_t *call);
int agent_handle_info(agent_call_t *call);
int agent_handle_platform_info(agent_call_t *call);
int agent_handle_regions(agent_call_t *call);

#endif
