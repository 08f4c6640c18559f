/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a verified identity to a request. */
#ifndef AGENT_AUTH_BINDING_H
#define AGENT_AUTH_BINDING_H

#include <httpd.h>

#include "../core/identity.h"

/* Binds the identity, which lives as long as r->pool, to the request in its
 * location. */
void agent_binding_set(request_rec *r, const agent_identity_t *identity);

/*
 * Returns the identity bound to the request; NULL: none. Subrequests and
 * internal redirects have that of their request, if they are in a location of
 * the same configuration: in any other one, httpd authenticates them again.
 */
const agent_identity_t *agent_binding_get(const request_rec *r);

/*
 * For a Require: returns the identity that was verified for this request
 * itself; NULL: none. The configuration does not matter: to a line that names
 * an <AuthzProviderAlias> mod_authz_core shows a copy, merged with that of the
 * alias. Subrequests and internal redirects of another configuration must be
 * authenticated again, even if both locations inherit their AuthType: only
 * authentication sets r->user, and without r->user x-user-id is believed.
 */
const agent_identity_t *agent_binding_of_request(const request_rec *r);

/*
 * Returns whether the key is for this deployment (as a text, see
 * core/deployment.h), or for all of its account. Compares names: a query for
 * the id would create the deployment, on behalf of a key that is not for it.
 * Scratch space from pool.
 */
bool agent_binding_is_for(const agent_identity_t *identity,
                          const char *deployment, apr_pool_t *pool);

#endif
