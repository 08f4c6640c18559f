/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of each handler name; router.h explains the names in braces. */
#include "handlers.h"

#include "../private.h"

/* A row that is none of the macros below, and so might have no scope, does not
 * compile: this is for one that leaves members out, GCC poison below for one
 * that names its members, of which this does not warn. */
#pragma GCC diagnostic error "-Wmissing-field-initializers"

/* A route about the deployment's data; scope: that which a key must grant for
 * it, without AGENT_SCOPE_. It cannot be left out. */
#define DATA(method, path, handle, scope)                                      \
    {                                                                          \
        method, path, handle, AGENT_SCOPE_##scope, true, false                 \
    }
/* A route without data, which needs no key. */
#define OPEN(method, path, handle)                                             \
    {                                                                          \
        method, path, handle, AGENT_SCOPE_NONE, false, false                   \
    }
/* A route about an account, which needs no key: the account does not have one
 * yet, or no longer. */
#define KEYLESS(method, path, handle)                                          \
    {                                                                          \
        method, path, handle, AGENT_SCOPE_NONE, false, true                    \
    }

/* A route about the account of the key that it needs. */
#define ACCOUNT(method, path, handle, scope)                                   \
    {                                                                          \
        method, path, handle, AGENT_SCOPE_##scope, false, false                \
    }
#define LAST                                                                   \
    {                                                                          \
        NULL, NULL, NULL, AGENT_SCOPE_NONE, false, false                       \
    }
#pragma GCC poison method path handle scope has_data is_regional

/* The deployment API of an agent server. */
static const agent_route_t server_routes[] = {
    DATA("POST", "/assistants", agent_handle_assistant_create, DEPLOY),
    DATA("POST", "/assistants/search", agent_handle_assistant_search, READ),
    DATA("POST", "/assistants/count", agent_handle_assistant_count, READ),
    DATA("GET", "/assistants/{assistant_id}", agent_handle_assistant_get, READ),
    DATA("PATCH", "/assistants/{assistant_id}", agent_handle_assistant_update,
         DEPLOY),
    DATA("DELETE", "/assistants/{assistant_id}", agent_handle_assistant_delete,
         DEPLOY),
    DATA("POST", "/assistants/{assistant_id}/versions",
         agent_handle_assistant_versions, READ),
    DATA("POST", "/assistants/{assistant_id}/latest",
         agent_handle_assistant_latest, DEPLOY),
    DATA("GET", "/assistants/{assistant_id}/graph",
         agent_handle_assistant_graph, READ),
    DATA("GET", "/assistants/{assistant_id}/schemas",
         agent_handle_assistant_schemas, READ),
    DATA("GET", "/assistants/{assistant_id}/subgraphs",
         agent_handle_assistant_subgraphs, READ),
    DATA("GET", "/assistants/{assistant_id}/subgraphs/{namespace}",
         agent_handle_assistant_subgraphs, READ),
    DATA("POST", "/threads", agent_handle_thread_create, RUN),
    DATA("POST", "/threads/search", agent_handle_thread_search, READ),
    DATA("POST", "/threads/count", agent_handle_thread_count, READ),
    DATA("POST", "/threads/prune", agent_handle_thread_prune, RUN),
    DATA("GET", "/threads/{thread_id}", agent_handle_thread_get, READ),
    DATA("PATCH", "/threads/{thread_id}", agent_handle_thread_update, RUN),
    DATA("DELETE", "/threads/{thread_id}", agent_handle_thread_delete, RUN),
    DATA("POST", "/threads/{thread_id}/copy", agent_handle_thread_copy, RUN),
    DATA("GET", "/threads/{thread_id}/storage", agent_handle_thread_storage,
         READ),
    DATA("GET", "/threads/{thread_id}/stream", agent_handle_thread_stream,
         READ),
    DATA("GET", "/threads/{thread_id}/state", agent_handle_state_get, READ),
    DATA("POST", "/threads/{thread_id}/state", agent_handle_state_update, RUN),
    DATA("POST", "/threads/{thread_id}/state/checkpoint",
         agent_handle_state_checkpoint, READ),
    DATA("GET", "/threads/{thread_id}/state/{checkpoint_id}",
         agent_handle_state_at, READ),
    DATA("GET", "/threads/{thread_id}/history", agent_handle_history_get, READ),
    DATA("POST", "/threads/{thread_id}/history", agent_handle_history_post,
         READ),
    DATA("GET", "/threads/{thread_id}/runs", agent_handle_run_list, READ),
    DATA("POST", "/threads/{thread_id}/runs", agent_handle_run_create, RUN),
    DATA("POST", "/threads/{thread_id}/runs/wait", agent_handle_run_create_wait,
         RUN),
    DATA("POST", "/threads/{thread_id}/runs/stream",
         agent_handle_run_create_stream, RUN),
    DATA("GET", "/threads/{thread_id}/runs/{run_id}", agent_handle_run_get,
         READ),
    DATA("DELETE", "/threads/{thread_id}/runs/{run_id}",
         agent_handle_run_delete, RUN),
    DATA("GET", "/threads/{thread_id}/runs/{run_id}/join",
         agent_handle_run_join, READ),
    DATA("GET", "/threads/{thread_id}/runs/{run_id}/stream",
         agent_handle_run_stream, READ),
    DATA("POST", "/threads/{thread_id}/runs/{run_id}/cancel",
         agent_handle_run_cancel, RUN),
    DATA("POST", "/runs", agent_handle_run_create, RUN),
    DATA("POST", "/runs/batch", agent_handle_run_batch, RUN),
    DATA("POST", "/runs/cancel", agent_handle_run_cancel_many, RUN),
    DATA("POST", "/runs/wait", agent_handle_run_create_wait, RUN),
    DATA("POST", "/runs/stream", agent_handle_run_create_stream, RUN),
    DATA("GET", "/runs/{run_id}/join", agent_handle_stateless_join, READ),
    DATA("GET", "/runs/{run_id}/stream", agent_handle_stateless_stream, READ),
    DATA("PUT", "/store/items", agent_handle_item_put, RUN),
    DATA("GET", "/store/items", agent_handle_item_get, READ),
    DATA("DELETE", "/store/items", agent_handle_item_delete, RUN),
    DATA("POST", "/store/items/search", agent_handle_item_search, READ),
    DATA("POST", "/store/namespaces", agent_handle_namespace_list, READ),
    OPEN("GET", "/ok", agent_handle_ok),
    OPEN("GET", "/info", agent_handle_info),
    LAST};

/* Anybody may send one: the members of the bodies have some kilobytes. */
#define PLATFORM_BODY (64 * 1024)

/* The API of a platform host. Paths of both tables may coincide, with different
 * meanings. */
static const agent_route_t platform_routes[] = {
    OPEN("GET", "/", agent_handle_regions),
    OPEN("GET", "/ok", agent_handle_ok),
    OPEN("GET", "/info", agent_handle_platform_info),
    OPEN("GET", "/.well-known/agent-addresses", agent_handle_addresses),
    ACCOUNT("GET", "/auth", agent_handle_key_describe, ANY),
    KEYLESS("POST", "/v1/accounts", agent_handle_sign_up),
    ACCOUNT("GET", "/v1/account", agent_handle_account_get, READ),
    ACCOUNT("PATCH", "/v1/account", agent_handle_account_update, ADMIN),
    ACCOUNT("DELETE", "/v1/account", agent_handle_account_delete, ADMIN),
    KEYLESS("GET", "/v1/account/deletion", agent_handle_deletion_get),
    ACCOUNT("GET", "/v1/account/export", agent_handle_account_export, ADMIN),
    ACCOUNT("GET", "/v1/account/keys", agent_handle_key_list, ADMIN),
    ACCOUNT("POST", "/v1/account/keys", agent_handle_key_create, ADMIN),
    ACCOUNT("DELETE", "/v1/account/keys/{key_id}", agent_handle_key_revoke,
            ADMIN),
    ACCOUNT("POST", "/v1/account/keys/{key_id}/rotate", agent_handle_key_rotate,
            ADMIN),
    ACCOUNT("GET", "/v1/account/usage", agent_handle_usage_get, READ),
    ACCOUNT("GET", "/v1/account/audit", agent_handle_audit_list, ADMIN),
    LAST};

const agent_api_t agent_apis[] = {{.handler = AGENT_SERVER_HANDLER,
                                   .routes = server_routes,
                                   .needs_waiters = true},
                                  {.handler = AGENT_PLATFORM_HANDLER,
                                   .routes = platform_routes,
                                   .is_platform = true,
                                   .max_body = PLATFORM_BODY},
                                  {.handler = NULL}};
