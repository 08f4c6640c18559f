/* SPDX-License-Identifier: Apache-2.0 */
/* Who sends a request, as an API key says, and what it may do. */
#ifndef AGENT_CORE_IDENTITY_H
#define AGENT_CORE_IDENTITY_H

#include <apr_pools.h>
#include <apr_time.h>

#include "api_key.h"
#include "deployment.h"
#include "uuid.h"

/* The AuthType that verifies keys. */
#define AGENT_AUTH_TYPE "AgentKey"

/* The Require that names accounts. */
#define AGENT_REQUIRE_ACCOUNT "agent-account"

/* Each route needs one; a key grants a set. None includes another. */
typedef enum agent_scope_t {
    /* Of a route that needs no key. 0 is not a scope, so that no route is
     * without one by mistake. */
    AGENT_SCOPE_NONE = 1,
    AGENT_SCOPE_READ = 2,
    AGENT_SCOPE_RUN = 4,
    AGENT_SCOPE_DEPLOY = 8,
    AGENT_SCOPE_ADMIN = 16,
    /* Of a route that any key may use: each grants one of them. */
    AGENT_SCOPE_ANY = 30
} agent_scope_t;

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
    /* Of a personal key, else NULL. */
    const char *user_id;
    /* When the database has found it valid, and when it expires, which may be
     * AGENT_CLOCK_NEVER (clock.h). */
    apr_time_t checked_at;
    apr_time_t expires_at;
} agent_identity_t;

/* Returns the word of a scope, "read" for example; NULL: not a scope that a key
 * may grant. */
const char *agent_scope_word(agent_scope_t scope);

/* Returns the scope of a word; 0: any other text. */
unsigned agent_scope_read(const char *word);

/* Returns the words of a set as a JSON array, in pool. */
const char *agent_scope_print(unsigned scopes, apr_pool_t *pool);

#endif
