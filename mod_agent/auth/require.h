/* SPDX-License-Identifier: Apache-2.0 */
/* `Require agent-account`, `agent-scope`, `agent-deployment`: authorization by
 * the owner of an API key. */
#ifndef AGENT_AUTH_REQUIRE_H
#define AGENT_AUTH_REQUIRE_H

#include "../http/call.h"

/* Registers the providers; called with the module's hooks. */
void agent_require_register(apr_pool_t *pool);

/* Refuses a request with a valid key with 404 (DEPLOYMENT_NOT_FOUND), whether
 * the deployment exists or not: 401 would mislead the owner of the key. Returns
 * what a hook returns to httpd. */
int agent_require_hide_deployment(request_rec *r);

#endif
