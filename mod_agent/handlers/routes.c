/* SPDX-License-Identifier: Apache-2.0 */
/* Which method and path leads to which handler. */
#include "handlers.h"

const agent_route_t agent_routes[] = {
    {"POST", "/threads", agent_handle_thread_create},
    {"GET", "/threads/{id}", agent_handle_thread_get},
    {"DELETE", "/threads/{id}", agent_handle_thread_delete},
    {"GET", "/threads/{id}/stream", agent_handle_thread_stream},
    {"GET", "/threads/{id}/state", agent_handle_state_get},
    {"GET", "/threads/{id}/state/{id}", agent_handle_state_at},
    {"GET", "/threads/{id}/runs", agent_handle_run_list},
    {"POST", "/threads/{id}/runs", agent_handle_run_create},
    {"POST", "/threads/{id}/runs/wait", agent_handle_run_create_wait},
    {"POST", "/threads/{id}/runs/stream", agent_handle_run_create_stream},
    {"GET", "/threads/{id}/runs/{id}", agent_handle_run_get},
    {"DELETE", "/threads/{id}/runs/{id}", agent_handle_run_delete},
    {"GET", "/threads/{id}/runs/{id}/join", agent_handle_run_join},
    {"GET", "/threads/{id}/runs/{id}/stream", agent_handle_run_stream},
    {"POST", "/threads/{id}/runs/{id}/cancel", agent_handle_run_cancel},
    {"POST", "/runs", agent_handle_stateless_create},
    {"POST", "/runs/batch", agent_handle_run_batch},
    {"POST", "/runs/cancel", agent_handle_run_cancel_many},
    {"POST", "/runs/wait", agent_handle_stateless_create_wait},
    {"POST", "/runs/stream", agent_handle_stateless_create_stream},
    {"GET", "/runs/{id}/join", agent_handle_stateless_join},
    {"GET", "/runs/{id}/stream", agent_handle_stateless_stream},
    {"GET", "/ok", agent_handle_ok},
    {"GET", "/info", agent_handle_info},
    {NULL, NULL, NULL}};
