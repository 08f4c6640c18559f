/* SPDX-License-Identifier: Apache-2.0 */
/* Admits requests to deployments and routes. The handler checks this itself, in
 * addition to the Require directives of the location. */
#ifndef AGENT_AUTH_ADMISSION_H
#define AGENT_AUTH_ADMISSION_H

#include "../http/call.h"

/*
 * Called with call->match, before the body is received. Sets call->identity,
 * call->user_id and call->is_authenticated. Errors, all of which are sent
 * without reading the body: WRONG_REGION, even where no key is needed, unless
 * the route has no data; UNAUTHORIZED and the others of
 * agent_provider_identify() for a deployment of an account, unless the route
 * needs no key; DEPLOYMENT_NOT_FOUND for a key of another account or
 * deployment, as for a deployment that does not exist; SCOPE_REQUIRED.
 */
apr_status_t agent_admission_check(agent_call_t *call);

/*
 * Verifies the key again, if there is one and its last verification is too old.
 * Called when the body has arrived, which may take minutes, and as call->renew
 * before each piece that a copy of a thread writes. Errors: those of
 * agent_provider_identify().
 */
apr_status_t agent_admission_renew(agent_call_t *call);

#endif
