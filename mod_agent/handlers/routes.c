/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of the deployment API. {thread_id} and its like are UUIDs, read
 * into the call by router.c. */
#include "handlers.h"

const agent_route_t agent_routes[] = {
    {"POST", "/threads", agent_handle_thread_create},
    {"GET", "/threads/{thread_id}", agent_handle_thread_get},
    {"DELETE", "/threads/{thread_id}", agent_handle_thread_delete},
    {"GET", "/threads/{thread_id}/stream", agent_handle_thread_stream},
    {"GET", "/threads/{thread_id}/state", agent_handle_state_get},
    {"GET", "/threads/{thread_id}/state/{checkpoint_id}",
     agent_handle_state_at},
    {"GET", "/threads/{thread_id}/runs", agent_handle_run_list},
    {"POST", "/threads/{thread_id}/runs", agent_handle_run_create},
    {"POST", "/threads/{thread_id}/runs/wait", agent_handle_run_create_wait},
    {"POST", "/threads/{thread_id}/runs/stream",
     agent_handle_run_create_stream},
    {"GET", "/threads/{thread_id}/runs/{run_id}", agent_handle_run_get},
    {"DELETE", "/threads/{thread_id}/runs/{run_id}", agent_handle_run_delete},
    {"GET", "/threads/{thread_id}/runs/{run_id}/join", agent_handle_run_join},
    {"GET", "/threads/{thread_id}/runs/{run_id}/stream",
     agent_handle_run_stream},
    {"POST", "/threads/{thread_id}/runs/{run_id}/cancel",
     agent_handle_run_cancel},
    {"POST", "/runs", agent_handle_run_create},
    {"POST", "/runs/batch", agent_handle_run_batch},
    {"POST", "/runs/cancel", agent_handle_run_cancel_many},
    {"POST", "/runs/wait", agent_handle_run_create_wait},
    {"POST", "/runs/stream", agent_handle_run_create_stream},
    {"GET", "/runs/{run_id}/join", agent_handle_stateless_join},
    {"GET", "/runs/{run_id}/stream", agent_handle_stateless_stream},
    {"GET", "/ok", agent_handle_ok},
    {"GET", "/info", agent_handle_info},
    {NULL, NULL, NULL}};
