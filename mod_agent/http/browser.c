/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks Host, Origin and Sec-Fetch-Site; see browser.h. Follows the Fetch
 * Standard (CORS, Origin) and Fetch Metadata (Sec-Fetch-Site). The check of the
 * Host protects against DNS rebinding, in which a page's own host name resolves
 * to this server. mod_ratelimit_regional has a check of its own: either module
 * works without the other, so they share no code.
 */
#include "browser.h"

#include <string.h>
#include <strings.h>

#include <apr_strings.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_vhost.h>

#include "../core/origin.h"
#include "body.h"

#define JSON_TYPE "application/json"

/* Response headers that SDKs read. */
#define EXPOSED                                                                \
    "Content-Location, Location, X-Pagination-Total, X-Pagination-Next, "      \
    "Retry-After"
#define ALLOWED "GET, POST, PUT, PATCH, DELETE"
/* Seconds for which a browser may cache a preflight. */
#define PREFLIGHT_AGE "600"

static const char *get_header(const request_rec *r, const char *name)
{
    return apr_table_get(r->headers_in, name);
}

/* ---- Host ----
 * Since the modules share no code, mod_ratelimit_regional/status/browser.c has
 * the same two functions. */

/* True for the address that the client connected to, and for "localhost" when
 * that is a loopback address: DNS cannot redirect either. */
static bool is_local_name(const conn_rec *c, const char *host)
{
    size_t length = strlen(host);

    if (host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    if (strlen(c->local_ip) == length
        && strncasecmp(host, c->local_ip, length) == 0) {
        return true;
    }
    return strcasecmp(host, "localhost") == 0
        && (strncmp(c->local_ip, "127.", 4) == 0
            || strcmp(c->local_ip, "::1") == 0);
}

/* Compares names as httpd does, without the port, which a proxy may change. A
 * request of HTTP/1.0 without Host is not a browser's. */
static bool is_own_host(request_rec *r)
{
    return r->hostname == NULL
        || ap_matches_request_vhost(r, r->hostname, r->server->port)
        || is_local_name(r->connection, r->hostname);
}

/* ---- Origin ---- */

static bool is_own_origin(const request_rec *r, const char *text)
{
    agent_origin_t origin;

    return r->hostname != NULL && agent_origin_read(&origin, text)
        && agent_origin_is(&origin, ap_http_scheme(r), r->hostname,
                           r->parsed_uri.port);
}

static bool is_allowed_origin(const agent_dir_config_t *dir, const char *text)
{
    const apr_array_header_t *patterns = agent_location_origins(dir);
    const ap_regex_t *match = agent_location_origin_match(dir);
    agent_origin_t origin;

    if (patterns != NULL && agent_origin_is_allowed(patterns, text)) {
        return true;
    }
    /* Not "null": sandboxed pages of any site send it. */
    return match != NULL && agent_origin_read(&origin, text)
        && ap_regexec(match, text, 0, NULL, 0) == 0;
}

/*
 * Sec-Fetch-Site "none" is a request of the user, from the address bar.
 * "same-origin" overrides Origin: behind a proxy that terminates TLS or changes
 * the Host, only the browser knows the site. "same-site" is another port or
 * subdomain and counts as cross-site.
 */
static bool is_cross_site(const request_rec *r, const agent_dir_config_t *dir)
{
    const char *site = get_header(r, "Sec-Fetch-Site");
    const char *origin = get_header(r, "Origin");

    if (site != NULL
        && (strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0)) {
        return false;
    }
    if (origin == NULL) {
        return site != NULL;
    }
    return !is_own_origin(r, origin) && !is_allowed_origin(dir, origin);
}

/* ---- CORS ---- */

void agent_browser_set_cors(request_rec *r)
{
    const agent_dir_config_t *dir = agent_location_dir(r);
    const char *origin = get_header(r, "Origin");
    const char *vary = apr_table_get(r->err_headers_out, "Vary");

    if (agent_location_origins(dir) == NULL
        && agent_location_origin_match(dir) == NULL) {
        return;
    }
    if (vary == NULL || !ap_find_token(r->pool, vary, "Origin")) {
        apr_table_mergen(r->err_headers_out, "Vary", "Origin");
    }
    if (origin != NULL && is_allowed_origin(dir, origin)) {
        apr_table_setn(r->err_headers_out, "Access-Control-Allow-Origin",
                       origin);
        apr_table_setn(r->err_headers_out, "Access-Control-Expose-Headers",
                       EXPOSED);
    }
}

bool agent_browser_is_preflight(const agent_call_t *call)
{
    request_rec *r = call->r;
    const char *headers = get_header(r, "Access-Control-Request-Headers");

    if (strcmp(r->method, "OPTIONS") != 0
        || get_header(r, "Access-Control-Request-Method") == NULL
        || apr_table_get(r->err_headers_out, "Access-Control-Allow-Origin")
            == NULL) {
        return false;
    }
    apr_table_setn(r->err_headers_out, "Access-Control-Allow-Methods", ALLOWED);
    apr_table_setn(r->err_headers_out, "Access-Control-Max-Age", PREFLIGHT_AGE);
    if (headers != NULL) {
        apr_table_setn(r->err_headers_out, "Access-Control-Allow-Headers",
                       headers);
    }
    return true;
}

/* ---- the check ---- */

static bool changes_nothing(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0
        || strcmp(method, "OPTIONS") == 0;
}

/* Pages may send certain other types without a preflight. */
static bool has_json_type(const request_rec *r)
{
    const char *type = get_header(r, "Content-Type");
    size_t length = strlen(JSON_TYPE);

    return type != NULL && strncasecmp(type, JSON_TYPE, length) == 0
        && (type[length] == '\0' || strchr("; \t", type[length]) != NULL);
}

static apr_status_t refuse(agent_call_t *call, agent_error_id_t id,
                           const char *header)
{
    const char *value = get_header(call->r, header);

    return agent_error_set(
        &call->err, id, NULL,
        apr_psprintf(call->pool, "%s: %s", header, value ? value : "(none)"),
        call->pool);
}

apr_status_t agent_browser_check(agent_call_t *call)
{
    request_rec *r = call->r;

    if (!is_own_host(r)) {
        return refuse(call, AGENT_E_MISDIRECTED, "Host");
    }
    agent_browser_set_cors(r);
    call->is_cross_site = is_cross_site(r, call->dir);
    if (call->is_cross_site && !changes_nothing(r->method)) {
        return refuse(call, AGENT_E_CROSS_SITE, "Origin");
    }
    if (get_header(r, "Origin") != NULL && agent_body_exists(r)
        && !has_json_type(r)) {
        return refuse(call, AGENT_E_CONTENT_TYPE, "Content-Type");
    }
    return APR_SUCCESS;
}
