/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a request's sender, from its API key. */
#ifndef AGENT_CORE_IDENTITY_H
#define AGENT_CORE_IDENTITY_H

#include <apr_pools.h>
#include <apr_time.h>

#include "api_key.h"
#include "deployment.h"
#include "scope.h"
#include "uuid.h"

/* The AuthType that verifies keys. */
#define AGENT_AUTH_TYPE "AgentKey"

/* The Require that names accounts. */
#define AGENT_REQUIRE_ACCOUNT "agent-account"

/* The owner of a verified key. */
typedef struct agent_identity_t {
    char key_id[AGENT_API_KEY_ID_CHARS + 1];
    char account_id[AGENT_UUID_SIZE];
    /* "": all deployments of the account. */
    char deployment_id[AGENT_UUID_SIZE];
    /* Its name. */
    char deployment[AGENT_DEPLOYMENT_NAME_MAX + 1];
    agent_api_key_kind_t kind;
    /* Of agent_scope_t. */
    unsigned scopes;
    /* The user of a personal key; else NULL. */
    const char *user_id;
    /* When the database last confirmed that the key is valid, and when it
     * expires; AGENT_CLOCK_NEVER: never (clock.h). */
    apr_time_t checked_at;
    apr_time_t expires_at;
} agent_identity_t;

#endif
