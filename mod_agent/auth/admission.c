/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the identity of a request against deployment and route; see
 * admission.h. */
#include "admission.h"

#include <string.h>

#include <http_protocol.h>

#include "../core/address.h"
#include "../core/clock.h"
#include "../core/deployment.h"
#include "../http/body.h"
#include "../http/browser.h"
#include "../http/requester.h"
#include "../http/router.h"
#include "binding.h"
#include "credential.h"
#include "key_cache.h"
#include "key_region.h"
#include "provider.h"
#include "realm.h"

/* A route without data, or a preflight, which has no credentials. */
static bool is_open(const agent_call_t *call)
{
    const agent_route_t *route = call->match.route;

    return route != NULL ? route->scope == AGENT_SCOPE_NONE
                         : agent_browser_is_preflight(call);
}

static apr_status_t identify(agent_call_t *call)
{
    if (agent_provider_identify(call->r, &call->err) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    call->identity = agent_binding_get(call->r);
    return APR_SUCCESS;
}

/* A request of a platform host: the key says which account it concerns, and the
 * location needs no AuthType. A path that does not exist needs no key. */
static apr_status_t check_account(agent_call_t *call)
{
    const agent_route_t *route = call->match.route;

    if (route == NULL) {
        return APR_SUCCESS;
    }
    if (call->identity == NULL && identify(call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (call->identity->deployment_id[0] != '\0'
        && route->scope != AGENT_SCOPE_ANY) {
        return agent_error_set(&call->err, AGENT_E_SCOPE_REQUIRED,
                               "The API key is for one deployment, and this "
                               "request concerns all of the account.",
                               NULL, call->pool);
    }
    return agent_requester_check_scope(call, route->scope);
}

/* Tells a client that has sent a key that this location does not read keys. */
static const char *describe_unread_key(request_rec *r)
{
    const char *key;

    return agent_credential_choose(
               &key, apr_table_get(r->headers_in, "x-api-key"),
               apr_table_get(r->headers_in, "Authorization"))
            == AGENT_CREDENTIAL_NONE
        ? NULL
        : "This location does not read API keys (AuthType AgentKey).";
}

/* Without an identity: a Require has admitted the request without a key, such
 * as `Require all granted`. */
static apr_status_t require_identity(agent_call_t *call)
{
    if (agent_provider_is_chosen(call->r)) {
        return identify(call);
    }
    agent_provider_challenge(call->r);
    return agent_error_set(&call->err, AGENT_E_UNAUTHORIZED,
                           describe_unread_key(call->r), NULL, call->pool);
}

static apr_status_t refuse_deployment(agent_call_t *call)
{
    return agent_error_set(&call->err, AGENT_E_DEPLOYMENT_NOT_FOUND, NULL, NULL,
                           call->pool);
}

/* A key for another deployment is refused before this one is looked up, which
 * would create it. */
static apr_status_t check_deployment(agent_call_t *call)
{
    return agent_binding_is_for(
               call->identity, agent_location_deployment(call->dir), call->pool)
        ? agent_router_set_deployment(call)
        : refuse_deployment(call);
}

/* account_id NULL: the built-in account, which is open where httpd.conf does
 * not require a key. */
static apr_status_t check_identity(agent_call_t *call, const char *account_id)
{
    if (call->api->is_platform) {
        return check_account(call);
    }
    if (call->identity == NULL) {
        if (account_id == NULL) {
            return APR_SUCCESS;
        }
        if (require_identity(call) != APR_SUCCESS) {
            return APR_EGENERAL;
        }
    }
    if (check_deployment(call) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    return call->match.route != NULL
        ? agent_requester_check_scope(call, call->match.route->scope)
        : APR_SUCCESS;
}

/* A key of another region is refused even where no key is required: the
 * request's data belongs to that region. */
static apr_status_t check_request(agent_call_t *call, const char *account_id)
{
    return call->identity != NULL
            || agent_key_region_check(call->r, call->child->config, &call->err)
                == APR_SUCCESS
        ? check_identity(call, account_id)
        : APR_EGENERAL;
}

static apr_status_t check_open(agent_call_t *call)
{
    const agent_route_t *route = call->match.route;

    return route != NULL && route->is_regional
        ? agent_key_region_check(call->r, call->child->config, &call->err)
        : APR_SUCCESS;
}

/* Decides by the peer of the connection, which mod_remoteip does not change. A
 * socket of both families has IPv4 peers as mapped addresses. */
static bool is_peer_trusted(const agent_call_t *call)
{
    const apr_array_header_t *blocks = agent_location_trusted(call->dir);
    const apr_sockaddr_t *peer = call->r->connection->client_addr;
    struct sockaddr_in v4;

    return blocks != NULL
        && (agent_address_is_in_any(blocks, (const void *)&peer->sa)
            || (agent_address_unmap(&v4, (const void *)&peer->sa)
                && agent_address_is_in_any(blocks, (const void *)&v4)));
}

/* Any client can send x-user-id; it is believed only from a trusted proxy. */
static bool is_header_believed(const agent_call_t *call)
{
    return call->r->user == NULL
        || (apr_table_get(call->r->headers_in, "x-user-id") != NULL
            && is_peer_trusted(call));
}

/* Uses r->user also if another module has authenticated it. */
static void set_user(agent_call_t *call)
{
    const agent_identity_t *identity = call->identity;

    call->is_authenticated = call->r->user != NULL;
    if (identity != NULL && identity->user_id != NULL) {
        call->user_id = identity->user_id;
    }
    else if (!is_header_believed(call)) {
        call->user_id = call->r->user;
    }
}

apr_status_t agent_admission_check(agent_call_t *call)
{
    const char *account_id = agent_deployment_account(
        agent_location_deployment(call->dir));
    apr_status_t rv;

    call->identity = agent_binding_get(call->r);
    call->realm = agent_realm_of(call->r);
    rv = is_open(call) ? check_open(call) : check_request(call, account_id);
    if (rv != APR_SUCCESS) {
        agent_body_skip(call->r);
        return APR_EGENERAL;
    }
    set_user(call);
    return APR_SUCCESS;
}

apr_status_t agent_admission_renew(agent_call_t *call)
{
    const agent_identity_t *identity = call->identity;

    return identity == NULL
            || agent_clock_boot_now() < agent_key_cache_until(identity)
        ? APR_SUCCESS
        : identify(call);
}
