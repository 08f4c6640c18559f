/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses keys of other regions; see key_region.h. Its hooks, in httpd's order:
 * post_read_request sets the variable of the log, and refuses paths that httpd
 * itself would refuse, and log; pre_translate_name refuses before the path is
 * decoded; translate_name sends a refusal below 400; header_parser and fixups
 * refuse what mod_proxy, or another handler, took from a route without data;
 * log_transaction sets the variable for requests that httpd refused while it
 * read them.
 */
#include "key_region.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_uri.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>

#include "../config/host.h"
#include "../config/location.h"
#include "../config/region.h"
#include "../core/api_key.h"
#include "../http/body.h"
#include "../http/problem.h"
#include "../http/response.h"
#include "../http/router.h"

#define SEPARATORS " \t,"

/* Whether the `length` bytes of word are a key; its secret points into word. */
static bool read_key(agent_api_key_t *key, const char *word, size_t length)
{
    char text[AGENT_API_KEY_SIZE];

    if (length >= sizeof(text)) {
        return false;
    }
    memcpy(text, word, length);
    text[length] = '\0';
    if (agent_api_key_parse(key, text) != AGENT_API_KEY_OK) {
        return false;
    }
    key->secret = word + (key->secret - text);
    return true;
}

/* Keys of unknown regions are unknown keys. The prefix first: most keys are of
 * this region, and a checksum costs more. */
static bool is_foreign(agent_api_key_t *key, const char *word, size_t length,
                       const agent_server_config_t *config)
{
    return !agent_api_key_begins_with(word, agent_region_own(config))
        && read_key(key, word, length)
        && (config->regions->nelts == 0
            || agent_region_find(config, key->region) != NULL);
}

/* Whether a header (NULL: absent) contains a key of another region of the
 * service, also among other words. */
static bool find_key(agent_api_key_t *key, const char *header,
                     const agent_server_config_t *config)
{
    const char *word = header;
    size_t length = 0;

    if (word == NULL) {
        return false;
    }
    do {
        word += length;
        word += strspn(word, SEPARATORS);
        length = strcspn(word, SEPARATORS);
    } while (length > 0 && !is_foreign(key, word, length, config));
    return length > 0;
}

#define DECISION "agent_key_region"

/* The result for the hooks and the handler of a request; in its pool, which an
 * internal redirect shares. */
typedef struct decision_t {
    /* The values of the headers: a module may change them afterwards, as
     * `RequestHeader set x-api-key KEY early` does. */
    const char *api_key;
    const char *authorization;
    bool is_foreign;
    /* Set if is_foreign. */
    agent_api_key_t key;
} decision_t;

static decision_t *decide(const request_rec *r, const char *api_key,
                          const char *authorization,
                          const agent_server_config_t *config)
{
    decision_t *decision = apr_palloc(r->pool, sizeof(*decision));

    decision->api_key = api_key;
    decision->authorization = authorization;
    decision->is_foreign = find_key(&decision->key, api_key, config)
        || find_key(&decision->key, authorization, config);
    apr_pool_userdata_setn(decision, DECISION, NULL, r->pool);
    return decision;
}

/* Returns the key of another region that a header has; NULL: none. */
static const agent_api_key_t *find_foreign(const request_rec *r,
                                           const agent_server_config_t *config)
{
    const char *api_key = apr_table_get(r->headers_in, "x-api-key");
    const char *authorization = apr_table_get(r->headers_in, "Authorization");
    const decision_t *decision;
    void *data = NULL;

    if (api_key == NULL && authorization == NULL) {
        return NULL;
    }
    apr_pool_userdata_get(&data, DECISION, r->pool);
    decision = data;
    if (decision == NULL || decision->api_key != api_key
        || decision->authorization != authorization) {
        decision = decide(r, api_key, authorization, config);
    }
    return decision->is_foreign ? &decision->key : NULL;
}

/* For the access log, which is written for the first of several requests:
 * internal redirects follow it. */
static void set_variable(request_rec *r, const char *region)
{
    for (; r != NULL; r = r->prev) {
        apr_table_set(r->subprocess_env, AGENT_WRONG_REGION_VARIABLE, region);
        apr_table_set(r->notes, AGENT_WRONG_REGION_VARIABLE, region);
    }
}

/* Path and query as the client sent them: httpd decodes those in r->parsed_uri,
 * and an internal redirect has its own. "//a/b" is a path for httpd, but
 * apr_uri_parse() would parse "a" as a host. */
static const char *find_path(const request_rec *r)
{
    apr_uri_t uri;

    while (r->prev != NULL) {
        r = r->prev;
    }
    if (*r->unparsed_uri == '/') {
        return r->unparsed_uri;
    }
    return apr_uri_parse(r->pool, r->unparsed_uri, &uri) == APR_SUCCESS
            && uri.path != NULL && *uri.path == '/'
        ? apr_uri_unparse(r->pool, &uri, APR_URI_UNP_OMITSITEPART)
        : "/";
}

/* home: the region of the key; NULL if its addresses are not known or are those
 * of another API. */
static void set_headers(request_rec *r, const agent_api_key_t *key,
                        const agent_region_t *home, int status)
{
    apr_table_t *headers = r->err_headers_out;

    /* The connection is closed: the unread body would follow. */
    r->connection->keepalive = AP_CONN_CLOSE;
    apr_table_set(headers, "X-Agent-Home-Region", key->region);
    if (home == NULL) {
        return;
    }
    apr_table_setn(
        headers, "Link",
        apr_pstrcat(r->pool, "<", home->api, ">; rel=\"alternate\"", NULL));
    if (status == HTTP_TEMPORARY_REDIRECT) {
        apr_table_setn(headers, "Location",
                       apr_pstrcat(r->pool, home->api, find_path(r), NULL));
    }
}

/* Without a known address there is no redirect. */
static int choose_status(const agent_server_config_t *config,
                         const agent_region_t *home)
{
    int status = agent_region_wrong_status(config);

    return home == NULL && status == HTTP_TEMPORARY_REDIRECT ? HTTP_FORBIDDEN
                                                             : status;
}

/* A region's name and URLs need no escapes. */
static const char *print_detail(const agent_api_key_t *key,
                                const agent_region_t *home,
                                bool is_platform_path, apr_pool_t *pool)
{
    const char *text = apr_psprintf(pool, "This key belongs to region %s",
                                    key->region);

    if (home == NULL) {
        return apr_pstrcat(pool, text, ".", NULL);
    }
    return is_platform_path
        ? apr_pstrcat(pool, text, ", whose API is ", home->api, ".", NULL)
        : apr_pstrcat(pool, text, ": use the address of your deployment there",
                      ". The platform host of that region is ", home->api, ".",
                      NULL);
}

apr_status_t agent_key_region_check(request_rec *r,
                                    const agent_server_config_t *config,
                                    agent_error_t **err)
{
    /* A deployment has another address in each region. */
    bool is_platform_path = !agent_host_has_deployments_only(config, r->server);
    const agent_region_t *target;
    const agent_region_t *home;
    const agent_api_key_t *key = find_foreign(r, config);

    if (key == NULL) {
        return APR_SUCCESS;
    }
    home = agent_region_find(config, key->region);
    target = is_platform_path ? home : NULL;
    agent_error_set(
        err, AGENT_E_WRONG_REGION,
        print_detail(key, home, is_platform_path, r->pool),
        apr_psprintf(r->pool, "key %s of region %s", key->id, key->region),
        r->pool);
    (*err)->http = choose_status(config, target);
    /* A region's name needs no escapes. */
    (*err)->members = apr_pstrcat(
        r->pool, ",\"home_region\":\"", key->region, "\"",
        agent_region_print_urls(home, false, r->pool), NULL);
    set_headers(r, key, target, (*err)->http);
    set_variable(r, key->region);
    return APR_EGENERAL;
}

/* Whether the request concerns no customer's data, such as GET /ok: its handler
 * responds, unless a RewriteRule of the location sets another handler. Not for
 * an ErrorDocument, which the client did not request. */
static bool is_open(request_rec *r)
{
    const agent_route_t *route = agent_router_route(r);

    return route != NULL && route->scope == AGENT_SCOPE_NONE
        && !route->is_regional && !agent_response_is_document(r)
        && (r->handler == NULL
            || strcmp(r->handler, agent_location_handler(r)) == 0);
}

/* The empty response keeps an ErrorDocument from being sent: with ProxyPass,
 * the request for that document would carry the key. If r is the request for
 * such a document, httpd responds to the first request, with the status of this
 * refusal and without the headers of the first error. */
static int refuse(request_rec *r, const agent_error_t *err)
{
    int status = agent_problem_refuse(r, NULL, err);

    agent_body_skip(r);
    ap_custom_response(r, status, "");
    for (request_rec *prev = r->prev; prev != NULL && prev->status != HTTP_OK;
         prev = prev->prev) {
        prev->status = status;
        apr_table_unset(prev->headers_out, "Location");
        apr_table_unset(prev->err_headers_out, "WWW-Authenticate");
        ap_custom_response(prev, status, "");
    }
    return status;
}

/* Whether httpd would refuse the path, and log it with the client's address;
 * with the same flags as httpd. */
static bool is_invalid(const request_rec *r)
{
    const core_server_config *core = ap_get_core_module_config(
        r->server->module_config);
    unsigned flags = AP_NORMALIZE_NOT_ABOVE_ROOT
        | AP_NORMALIZE_DECODE_UNRESERVED;
    char *path = apr_pstrdup(r->pool, r->parsed_uri.path);

    if (core->merge_slashes != AP_CORE_CONFIG_OFF) {
        flags |= AP_NORMALIZE_MERGE_SLASHES;
    }
    return path != NULL && strcmp(path, "*") != 0
        && !ap_normalize_path(path, flags);
}

/* Marks the request now, so that it is not logged if httpd refuses it before
 * the next hook. */
static int mark_request(request_rec *r)
{
    const agent_server_config_t *config = agent_config_server(r->server);
    const agent_api_key_t *key = agent_region_is_guarded(config)
        ? find_foreign(r, config)
        : NULL;
    agent_error_t *err = NULL;

    if (key == NULL) {
        return DECLINED;
    }
    set_variable(r, key->region);
    return is_invalid(r)
            && agent_key_region_check(r, config, &err) != APR_SUCCESS
        ? refuse(r, err)
        : DECLINED;
}

/* Called with a header. */
static int note_key(void *baton, const char *name, const char *value)
{
    request_rec *r = baton;
    agent_api_key_t key;

    if (!find_key(&key, value, agent_config_server(r->server))) {
        return 1;
    }
    set_variable(r, key.region);
    return 0;
}

/* Requests that httpd refuses while it reads them reach no other hook, but the
 * access log has them. httpd has not joined headers of one name yet. */
static int mark_unread(request_rec *r)
{
    if (r->status >= HTTP_BAD_REQUEST
        && agent_region_is_guarded(agent_config_server(r->server))) {
        apr_table_do(note_key, r, r->headers_in, "x-api-key", "Authorization",
                     NULL);
    }
    return DECLINED;
}

/* In a hook, before the handler: other handlers, such as mod_proxy's, read the
 * body. httpd itself reads it after a response of mod_rewrite, and after its
 * own response to a path that it cannot decode. Modules such as mod_alias
 * (`Redirect`) answer paths of an API before its handler. An internal redirect,
 * also to the document of an error, may come from a route without data, which
 * has passed this hook. */
static int refuse_foreign(request_rec *r)
{
    const agent_server_config_t *config = agent_config_server(r->server);
    agent_error_t *err = NULL;

    return !agent_region_is_guarded(config) || find_foreign(r, config) == NULL
            || (is_open(r) && !agent_body_exists(r))
            || agent_key_region_check(r, config, &err) == APR_SUCCESS
        ? DECLINED
        : refuse(r, err);
}

/* httpd ignores a status below 400 (307) of pre_translate_name. DONE skips the
 * decoding of the path, which may fail, and send_refusal() returns the status
 * from translate_name. */
static int refuse_early(request_rec *r)
{
    int status = refuse_foreign(r);

    return status == DECLINED || ap_is_HTTP_ERROR(status) ? status : DONE;
}

static int send_refusal(request_rec *r)
{
    const agent_error_t *err = r->main == NULL && !agent_response_is_document(r)
        ? agent_problem_of(r)
        : NULL;

    return err != NULL ? err->http : DECLINED;
}

void agent_key_region_register(void)
{
    ap_hook_post_read_request(mark_request, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_log_transaction(mark_unread, NULL, NULL, APR_HOOK_REALLY_FIRST);
    /* The locations are known, the path is not decoded yet. */
    ap_hook_pre_translate_name(refuse_early, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_translate_name(send_refusal, NULL, NULL, APR_HOOK_REALLY_FIRST);
    /* At this hook it is known whether mod_proxy has taken the request from an
     * API. */
    ap_hook_header_parser(refuse_foreign, NULL, NULL, APR_HOOK_REALLY_FIRST);
    /* Now also whether another handler has. */
    ap_hook_fixups(refuse_foreign, NULL, NULL, APR_HOOK_REALLY_LAST);
}
