/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authorization providers; see require.h. Each denies a request without an
 * identity, so that httpd authenticates it, and grants if the identity matches
 * one of the words of its line.
 */
#include "require.h"

#include <string.h>

#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mod_auth.h>

#include "../config/exclusion.h"
#include "../core/deployment.h"
#include "../http/body.h"
#include "../http/problem.h"
#include "../http/router.h"
#include "../http/unread.h"
#include "binding.h"
#include "child_state.h"
#include "provider.h"

/* ---- lines ---- */

#define ACCOUNT    AGENT_REQUIRE_ACCOUNT
#define SCOPE      "agent-scope"
#define DEPLOYMENT "agent-deployment"

typedef struct line_t {
    /* NULL: the line has none (`Require agent-deployment`). */
    const apr_array_header_t *words;
    agent_exclusion_t use;
} line_t;

/* Checks a word, which may be changed, and returns NULL; else the kind of word
 * that was expected. */
typedef const char *(*check_word_t)(char *word);

static line_t *new_line(const cmd_parms *cmd, const apr_array_header_t *words)
{
    line_t *parsed = apr_palloc(cmd->pool, sizeof(*parsed));

    parsed->words = words;
    parsed->use = agent_exclusion_read(cmd->directive, cmd->temp_pool);
    return parsed;
}

/* Sets *out to a line. name: of the provider. */
static const char *parse_line(const void **out, const cmd_parms *cmd,
                              const char *name, const char *line,
                              check_word_t check)
{
    apr_array_header_t *words = apr_array_make(cmd->pool, 2, sizeof(char *));
    const char *expected = NULL;
    char *word = NULL;

    while (expected == NULL && *line != '\0') {
        word = ap_getword_conf(cmd->pool, &line);
        expected = check(word);
        APR_ARRAY_PUSH(words, char *) = word;
    }
    *out = new_line(cmd, words);
    if (expected != NULL) {
        return apr_psprintf(cmd->pool, "Require %s: expected %s, got '%s'",
                            name, expected, word);
    }
    return words->nelts > 0
        ? NULL
        : apr_psprintf(cmd->pool,
                       "Require %s: expected at least one word, got none",
                       name);
}

static const char *check_account(char *word)
{
    char id[AGENT_UUID_SIZE];

    if (!agent_uuid_parse(id, word)) {
        return "ids of accounts (UUIDs; names grant nothing)";
    }
    memcpy(word, id, sizeof(id));
    return NULL;
}

static const char *parse_accounts(cmd_parms *cmd, const char *line,
                                  const void **out)
{
    return parse_line(out, cmd, ACCOUNT, line, check_account);
}

static const char *check_scope(char *word)
{
    return agent_scope_read(word) != 0 ? NULL : "read, run, deploy or admin";
}

static const char *parse_scopes(cmd_parms *cmd, const char *line,
                                const void **out)
{
    return parse_line(out, cmd, SCOPE, line, check_scope);
}

static const char *check_name(char *word)
{
    return agent_deployment_is_name(word) ? NULL : "names of deployments";
}

/* Without words: the deployment of the location. */
static const char *parse_names(cmd_parms *cmd, const char *line,
                               const void **out)
{
    if (*line == '\0') {
        *out = new_line(cmd, NULL);
        return NULL;
    }
    return parse_line(out, cmd, DEPLOYMENT, line, check_name);
}

/* In r->notes: a line has denied the scopes of the key. */
#define SCOPE_DENIED "agent_scope_denied"
/* In r->notes: the Require directives are evaluated next. */
#define REACHED "agent_authorization_reached"
/* In r->notes: the Require directives have admitted the request. */
#define ADMITTED "agent_admitted"

/* ---- checks ---- */

/* Compares an identity with one word. */
typedef authz_status (*match_word_t)(const agent_identity_t *identity,
                                     const char *word, request_rec *r);

/* The account whose deployment the location serves. */
static const char *account_of(request_rec *r)
{
    const char *account = agent_deployment_account(
        agent_location_deployment(agent_location_dir(r)));

    return account != NULL ? account : AGENT_ACCOUNT_ID;
}

/* httpd answers 500 to any error of a Require; ../http/server_error.c replaces
 * that by the status of err. The empty response keeps an `ErrorDocument 500` of
 * the location from being sent. */
static int refuse(request_rec *r, const agent_error_t *err)
{
    agent_body_skip(r);
    ap_custom_response(r, HTTP_INTERNAL_SERVER_ERROR, "");
    agent_problem_refuse(r, agent_child_state_get(), err);
    return HTTP_INTERNAL_SERVER_ERROR;
}

int agent_require_hide_deployment(request_rec *r)
{
    agent_error_t *err;

    agent_error_set(&err, AGENT_E_DEPLOYMENT_NOT_FOUND, NULL, NULL, r->pool);
    return refuse(r, err);
}

static authz_status hide_deployment(request_rec *r)
{
    agent_require_hide_deployment(r);
    return AUTHZ_GENERAL_ERROR;
}

/* Refuses a key for another deployment than the location serves, also of the
 * same account, whatever the line says: the handler would refuse it, too. */
static authz_status check_location(const agent_identity_t *identity,
                                   request_rec *r)
{
    const agent_api_t *api = agent_router_of(r);

    if (api == NULL || api->is_platform) {
        return AUTHZ_NEUTRAL;
    }
    return agent_binding_is_for(
               identity, agent_location_deployment(agent_location_dir(r)),
               r->pool)
        ? AUTHZ_NEUTRAL
        : hide_deployment(r);
}

/* Whether an exclusion denies a request without an identity: the location reads
 * no keys, and the request has no user or an anonymous one (""). If another
 * line demands a user, httpd authenticates first; a user of another AuthType
 * has no account and is not excluded. */
static bool is_unknown(const agent_exclusion_t *use, request_rec *r)
{
    return use->is_exclusion && !agent_provider_is_chosen(r)
        && (r->user != NULL ? *r->user == '\0' : use->lacks_demand);
}

/* Returns whether the identity is to be compared with the line; else *status is
 * the result. */
static bool is_checked(authz_status *status, const line_t *line,
                       const agent_identity_t *identity, request_rec *r)
{
    if (identity == NULL && !is_unknown(&line->use, r)) {
        *status = AUTHZ_DENIED_NO_USER;
        return false;
    }
    /* Granted, so that the line with `not` denies the request; a denial would
     * be neutral. */
    if (identity == NULL) {
        agent_unread_deny(r);
        *status = AUTHZ_GRANTED;
        return false;
    }
    if (agent_child_state_get() == NULL) {
        *status = AUTHZ_GENERAL_ERROR;
        return false;
    }
    *status = check_location(identity, r);
    return *status == AUTHZ_NEUTRAL;
}

/* Another line may grant it. */
static authz_status prepare_denial(authz_status status, request_rec *r)
{
    if (status == AUTHZ_DENIED) {
        agent_unread_deny(r);
    }
    return status;
}

static authz_status match_any(request_rec *r, const line_t *line,
                              match_word_t match)
{
    const agent_identity_t *identity = agent_binding_of_request(r);
    const apr_array_header_t *words = line->words;
    authz_status status;

    if (!is_checked(&status, line, identity, r)) {
        return status;
    }
    status = AUTHZ_DENIED;
    for (int i = 0; i < words->nelts && status == AUTHZ_DENIED; i++) {
        status = match(identity, APR_ARRAY_IDX(words, i, const char *), r);
    }
    return prepare_denial(status, r);
}

static authz_status grant(bool is_granted)
{
    return is_granted ? AUTHZ_GRANTED : AUTHZ_DENIED;
}

static authz_status match_account(const agent_identity_t *identity,
                                  const char *word, request_rec *r)
{
    return grant(strcmp(identity->account_id, word) == 0);
}

static authz_status check_accounts(request_rec *r, const char *args,
                                   const void *parsed)
{
    return match_any(r, parsed, match_account);
}

static authz_status match_scope(const agent_identity_t *identity,
                                const char *word, request_rec *r)
{
    return grant((identity->scopes & agent_scope_read(word)) != 0);
}

/* The denial of a negated line is not why a request is refused. */
static authz_status check_scopes(request_rec *r, const char *args,
                                 const void *parsed)
{
    const line_t *line = parsed;
    authz_status status = match_any(r, line, match_scope);

    if (status == AUTHZ_DENIED && !line->use.is_exclusion) {
        apr_table_setn(r->notes, SCOPE_DENIED, "");
    }
    return status;
}

/* Deployments of the account whose deployment the location serves. */
static authz_status match_name(const agent_identity_t *identity,
                               const char *word, request_rec *r)
{
    return grant(agent_binding_is_for(
        identity, agent_deployment_print(word, account_of(r), r->pool),
        r->pool));
}

static authz_status check_own(request_rec *r, const line_t *line)
{
    const agent_identity_t *identity = agent_binding_of_request(r);
    authz_status status;

    if (!is_checked(&status, line, identity, r)) {
        return status;
    }
    status = grant(agent_binding_is_for(
        identity, agent_location_deployment(agent_location_dir(r)), r->pool));
    return prepare_denial(status, r);
}

static authz_status check_names(request_rec *r, const char *args,
                                const void *parsed)
{
    const line_t *line = parsed;

    return line->words != NULL ? match_any(r, line, match_name)
                               : check_own(r, line);
}

/* Not set if, for example, a RewriteRule of the virtual host responds
 * before. */
static int mark_authorization(request_rec *r)
{
    apr_table_setn(r->notes, REACHED, "");
    return DECLINED;
}

/* Called only for a request that its Require admits. */
static int admit(request_rec *r)
{
    agent_unread_admit(r);
    apr_table_unset(r->notes, SCOPE_DENIED);
    apr_table_setn(r->notes, ADMITTED, "");
    return DECLINED;
}

/* ---- refusals ---- */

static bool lacks_scope(const request_rec *r)
{
    return apr_table_get(r->notes, SCOPE_DENIED) != NULL;
}

/* mod_authz_core answers 401, unless AuthzSendForbiddenOnFailure is set. The
 * key is valid: there is no challenge, and an `ErrorDocument 401` would send
 * this status. */
static int omit_challenge(request_rec *r, const char *auth_type)
{
    if (!lacks_scope(r)) {
        return DECLINED;
    }
    ap_custom_response(r, HTTP_UNAUTHORIZED, "");
    return OK;
}

static void explain(request_rec *r, agent_error_id_t id, const char *detail)
{
    agent_error_t *err;

    agent_error_set(&err, id, detail, NULL, r->pool);
    agent_body_skip(r);
    agent_problem_refuse(r, agent_child_state_get(), err);
}

/* Whether a request with a verified key is refused before the handler by a line
 * that gives no reason, such as one with `not`. */
static bool is_denied_key(request_rec *r)
{
    return agent_binding_of_request(r) != NULL && agent_router_of(r) != NULL
        && apr_table_get(r->notes, ADMITTED) == NULL;
}

/* An AuthType without a Require, or one that no module has, for example: httpd
 * answers 500 before the handler. */
static bool is_unauthorizable(request_rec *r)
{
    return r->status == HTTP_INTERNAL_SERVER_ERROR && ap_auth_type(r) != NULL
        && agent_router_of(r) != NULL
        && apr_table_get(r->notes, REACHED) != NULL
        && apr_table_get(r->notes, ADMITTED) == NULL;
}

/* Sends the same response for a missing scope with all handlers, also those of
 * other modules. */
static void explain_denial(request_rec *r)
{
    bool is_forbidden = r->status == HTTP_FORBIDDEN;

    if (agent_problem_of(r) != NULL) {
        return;
    }
    if (is_unauthorizable(r)) {
        explain(r, AGENT_E_INTERNAL,
                "The server could not authorize the request: its error log "
                "says why.");
        return;
    }
    if (r->status != HTTP_UNAUTHORIZED && !is_forbidden) {
        return;
    }
    if (lacks_scope(r)) {
        explain(r, AGENT_E_SCOPE_REQUIRED, NULL);
    }
    else if (is_denied_key(r)) {
        explain(r, is_forbidden ? AGENT_E_FORBIDDEN : AGENT_E_UNAUTHORIZED,
                "This API key is not admitted here (Require).");
    }
}

static const authz_provider account_provider = {check_accounts, parse_accounts};
static const authz_provider scope_provider = {check_scopes, parse_scopes};
static const authz_provider deployment_provider = {check_names, parse_names};

static void add(apr_pool_t *pool, const char *name,
                const authz_provider *provider)
{
    ap_register_auth_provider(pool, AUTHZ_PROVIDER_GROUP, name,
                              AUTHZ_PROVIDER_VERSION, provider,
                              AP_AUTH_INTERNAL_PER_CONF);
}

void agent_require_register(apr_pool_t *pool)
{
    add(pool, ACCOUNT, &account_provider);
    add(pool, SCOPE, &scope_provider);
    add(pool, DEPLOYMENT, &deployment_provider);
    ap_hook_check_access(mark_authorization, NULL, NULL, APR_HOOK_REALLY_LAST,
                         AP_AUTH_INTERNAL_PER_CONF);
    ap_hook_fixups(admit, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_note_auth_failure(omit_challenge, NULL, NULL, APR_HOOK_FIRST);
    /* Before the hook of ../http/server_error.c. */
    ap_hook_insert_error_filter(explain_denial, NULL, NULL, APR_HOOK_FIRST);
}
