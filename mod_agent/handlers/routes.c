/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of each handler name; router.h explains the names in braces. */
#include "handlers.h"

/* The deployment API of an agent server. */
static const agent_route_t server_routes[] = {
    {"POST", "/assistants", agent_handle_assistant_create, true},
    {"POST", "/assistants/search", agent_handle_assistant_search, true},
    {"POST", "/assistants/count", agent_handle_assistant_count, true},
    {"GET", "/assistants/{assistant_id}", agent_handle_assistant_get, true},
    {"PATCH", "/assistants/{assistant_id}", agent_handle_assistant_update,
     true},
    {"DELETE", "/assistants/{assistant_id}", agent_handle_assistant_delete,
     true},
    {"POST", "/assistants/{assistant_id}/versions",
     agent_handle_assistant_versions, true},
    {"POST", "/assistants/{assistant_id}/latest", agent_handle_assistant_latest,
     true},
    {"GET", "/assistants/{assistant_id}/graph", agent_handle_assistant_graph,
     true},
    {"GET", "/assistants/{assistant_id}/schemas",
     agent_handle_assistant_schemas, true},
    {"GET", "/assistants/{assistant_id}/subgraphs",
     agent_handle_assistant_subgraphs, true},
    {"GET", "/assistants/{assistant_id}/subgraphs/{namespace}",
     agent_handle_assistant_subgraphs, true},
    {"POST", "/threads", agent_handle_thread_create, true},
    {"GET", "/threads/{thread_id}", agent_handle_thread_get, true},
    {"DELETE", "/threads/{thread_id}", agent_handle_thread_delete, true},
    {"POST", "/threads/{thread_id}/copy", agent_handle_thread_copy, true},
    {"GET", "/threads/{thread_id}/stream", agent_handle_thread_stream, true},
    {"GET", "/threads/{thread_id}/state", agent_handle_state_get, true},
    {"POST", "/threads/{thread_id}/state", agent_handle_state_update, true},
    {"GET", "/threads/{thread_id}/state/{checkpoint_id}", agent_handle_state_at,
     true},
    {"GET", "/threads/{thread_id}/runs", agent_handle_run_list, true},
    {"POST", "/threads/{thread_id}/runs", agent_handle_run_create, true},
    {"POST", "/threads/{thread_id}/runs/wait", agent_handle_run_create_wait,
     true},
    {"POST", "/threads/{thread_id}/runs/stream", agent_handle_run_create_stream,
     true},
    {"GET", "/threads/{thread_id}/runs/{run_id}", agent_handle_run_get, true},
    {"DELETE", "/threads/{thread_id}/runs/{run_id}", agent_handle_run_delete,
     true},
    {"GET", "/threads/{thread_id}/runs/{run_id}/join", agent_handle_run_join,
     true},
    {"GET", "/threads/{thread_id}/runs/{run_id}/stream",
     agent_handle_run_stream, true},
    {"POST", "/threads/{thread_id}/runs/{run_id}/cancel",
     agent_handle_run_cancel, true},
    {"POST", "/runs", agent_handle_run_create, true},
    {"POST", "/runs/batch", agent_handle_run_batch, true},
    {"POST", "/runs/cancel", agent_handle_run_cancel_many, true},
    {"POST", "/runs/wait", agent_handle_run_create_wait, true},
    {"POST", "/runs/stream", agent_handle_run_create_stream, true},
    {"GET", "/runs/{run_id}/join", agent_handle_stateless_join, true},
    {"GET", "/runs/{run_id}/stream", agent_handle_stateless_stream, true},
    {"PUT", "/store/items", agent_handle_item_put, true},
    {"GET", "/store/items", agent_handle_item_get, true},
    {"DELETE", "/store/items", agent_handle_item_delete, true},
    {"POST", "/store/items/search", agent_handle_item_search, true},
    {"POST", "/store/namespaces", agent_handle_namespace_list, true},
    {"GET", "/ok", agent_handle_ok, false},
    {"GET", "/info", agent_handle_info, false},
    {NULL, NULL, NULL, false}};

/* The API of a platform host. Paths of both tables may coincide, with different
 * meanings. */
static const agent_route_t platform_routes[] = {
    {"GET", "/ok", agent_handle_ok, false},
    {"GET", "/info", agent_handle_platform_info, false},
    {NULL, NULL, NULL, false}};

const agent_api_t agent_apis[] = {
    {.handler = "agent", .routes = server_routes, .needs_waiters = true},
    {.handler = "agent-platform", .routes = platform_routes},
    {.handler = NULL}};
