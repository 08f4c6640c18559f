/* SPDX-License-Identifier: Apache-2.0 */
/* The scopes and the user of a request, for handlers. */
#ifndef AGENT_HTTP_REQUESTER_H
#define AGENT_HTTP_REQUESTER_H

#include "call.h"

/* Checks that the request's key, if it has one, grants a scope. The route's own
 * is checked before its handler is called. Error: SCOPE_REQUIRED. */
apr_status_t agent_requester_check_scope(agent_call_t *call,
                                         agent_scope_t scope);

/* *out: the user of the request's runs, by authentication or else by
 * x-user-id; "" without one. Error: BAD_REQUEST. */
apr_status_t agent_requester_user(const char **out, agent_call_t *call);

/* Returns the members of config.configurable in which graphs find the
 * authenticated user, without braces, in call->pool; NULL: nobody was
 * authenticated. user: from agent_requester_user(). */
const char *agent_requester_print(const agent_call_t *call, const char *user);

/* Returns the account of the deployment, or that of the key if there is no
 * deployment, with the account's limits on waiting requests; borrowed from the
 * configuration and the call. */
agent_waiter_account_t agent_requester_account(const agent_call_t *call);

#endif
