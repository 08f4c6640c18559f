/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The authentication hooks; see provider.h. httpd calls them where a Require
 * needs a user, so that keys combine with the Require and the AuthType of any
 * other module.
 */
#include "provider.h"

#include <strings.h>

#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>

#include "../http/body.h"
#include "../http/problem.h"
#include "../wait/client_address.h"
#include "authenticate.h"
#include "binding.h"
#include "child_state.h"
#include "key_region.h"
#include "realm.h"

bool agent_provider_is_chosen(request_rec *r)
{
    const char *type = ap_auth_type(r);

    return type != NULL && strcasecmp(type, AGENT_AUTH_TYPE) == 0;
}

void agent_provider_challenge(request_rec *r)
{
    /* A refusal is sent before the body is read. */
    agent_body_skip(r);
    agent_problem_challenge(r, agent_realm_of(r));
}

static void set_headers(request_rec *r, const agent_error_t *err)
{
    agent_body_skip(r);
    if (agent_error_http(err->id) == HTTP_UNAUTHORIZED) {
        agent_provider_challenge(r);
    }
}

static apr_status_t authenticate(const agent_identity_t **out, request_rec *r,
                                 agent_error_t **err)
{
    const agent_auth_request_t request = {
        .api_key = apr_table_get(r->headers_in, "x-api-key"),
        .authorization = apr_table_get(r->headers_in, "Authorization"),
        .address = agent_client_address_number(r->useragent_addr),
        .is_renewal = agent_binding_get(r) != NULL};
    const agent_child_t *child = agent_child_state_get();

    if (child != NULL
        && agent_key_region_check(r, child->config, err) != APR_SUCCESS) {
        return APR_EGENERAL;
    }
    if (child == NULL || child->auth == NULL) {
        agent_error_set(err, AGENT_E_UNAVAILABLE, NULL,
                        "this server has no database for API keys", r->pool);
        return APR_EGENERAL;
    }
    return agent_authenticate(out, child->auth, &request, err, r->pool);
}

apr_status_t agent_provider_identify(request_rec *r, agent_error_t **err)
{
    const agent_identity_t *identity = NULL;

    if (authenticate(&identity, r, err) != APR_SUCCESS) {
        set_headers(r, *err);
        return APR_EGENERAL;
    }
    agent_binding_set(r, identity);
    r->ap_auth_type = apr_pstrdup(r->pool, AGENT_AUTH_TYPE);
    r->user = apr_pstrdup(r->pool,
                          identity->user_id != NULL ? identity->user_id
                                                    : identity->key_id);
    return APR_SUCCESS;
}

#define USER_BEFORE "agent_user_before"

/* An access checker may have set the user, as mod_ssl's does (SSLUserName):
 * httpd would then consider the request authenticated and not require a key. */
static int put_user_aside(request_rec *r)
{
    if (r->user != NULL && agent_provider_is_chosen(r)) {
        apr_table_setn(r->notes, USER_BEFORE, r->user);
        r->user = NULL;
    }
    return DECLINED;
}

/* Require has admitted the request without a key. */
static int restore_user(request_rec *r)
{
    if (r->user == NULL) {
        r->user = (char *)apr_table_get(r->notes, USER_BEFORE);
    }
    return DECLINED;
}

static int check_key(request_rec *r)
{
    const agent_child_t *child = agent_child_state_get();
    agent_error_t *err = NULL;

    if (!agent_provider_is_chosen(r)) {
        return DECLINED;
    }
    if (agent_provider_identify(r, &err) == APR_SUCCESS) {
        return OK;
    }
    return child != NULL ? agent_problem_refuse(r, child, err)
                         : HTTP_SERVICE_UNAVAILABLE;
}

/* A Require has refused the request. */
static int note_failure(request_rec *r, const char *auth_type)
{
    if (strcasecmp(auth_type, AGENT_AUTH_TYPE) != 0) {
        return DECLINED;
    }
    agent_provider_challenge(r);
    return OK;
}

/* A Require has refused the key with 403, for a handler of any module: httpd
 * would read the body first. */
static void skip_body(request_rec *r)
{
    if (r->status == HTTP_FORBIDDEN && agent_provider_is_chosen(r)) {
        agent_body_skip(r);
    }
}

void agent_provider_register(void)
{
    static const char *const before[] = {"mod_authz_core.c", NULL};

    ap_hook_check_access_ex(put_user_aside, NULL, before, APR_HOOK_LAST,
                            AP_AUTH_INTERNAL_PER_CONF);
    ap_hook_fixups(restore_user, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_check_authn(check_key, NULL, NULL, APR_HOOK_MIDDLE,
                        AP_AUTH_INTERNAL_PER_CONF);
    ap_hook_note_auth_failure(note_failure, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_error_filter(skip_body, NULL, NULL, APR_HOOK_MIDDLE);
}
