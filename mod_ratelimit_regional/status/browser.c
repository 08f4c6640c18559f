/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-site requests and foreign names; see browser.h. Follows the Fetch
 * Standard (Origin) and Fetch Metadata (Sec-Fetch-Site). mod_agent has a check
 * of its own (http/browser.c): either module can be used without the other, so
 * they share no code. */
#include "browser.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <apr_strings.h>
#include <http_config.h>
#include <http_protocol.h>
#include <http_main.h>
#include <http_vhost.h>

#include "../config/config.h"
#include "../decision/decide.h"
#include "../private.h"

/* How one is logged. */
typedef struct refusal_t {
    int level;
    uint32_t count; /* of its kind in the last minute */
} refusal_t;

/* The address that the client has connected to, and "localhost" for one of
 * this machine's own: no DNS of anybody's makes these lead elsewhere. */
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

/* As httpd compares names: without the port, which a proxy may have changed.
 * HTTP/1.0 knows no Host, and no browser sends it. */
static bool is_own_host(request_rec *r)
{
    return r->hostname == NULL
        || ap_matches_request_vhost(r, r->hostname, r->server->port)
        || is_local_name(r->connection, r->hostname);
}

/* Scheme, host and port of the request, as browsers write an origin. The Host
 * has been found to be ours. */
static bool is_own_origin(const request_rec *r, const char *origin)
{
    const char *host = apr_table_get(r->headers_in, "Host");

    return host != NULL
        && strcasecmp(
               origin,
               apr_pstrcat(r->pool, ap_http_scheme(r), "://", host, NULL))
        == 0;
}

/* "none" is the user himself, by the address bar. Behind a proxy that speaks
 * TLS, or changes the Host, only the browser knows what is "same-origin". */
static bool is_cross_site(const request_rec *r)
{
    const char *site = apr_table_get(r->headers_in, "Sec-Fetch-Site");
    const char *origin = apr_table_get(r->headers_in, "Origin");

    if (site != NULL
        && (strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0)) {
        return false;
    }
    return origin != NULL ? !is_own_origin(r, origin) : site != NULL;
}

/* One warning a minute: anybody who reaches the page can cause it. */
static refusal_t note_refusal(request_rec *r, const char *event)
{
    const rlr_site_t *own = rlr_config_get(r->server)->site;
    const rlr_site_t *site = own ? own : rlr_site_find(ap_server_conf, NULL);
    refusal_t refusal = {APLOG_INFO, 1};

    if (site != NULL) {
        refusal.count = rlr_limit_count_minute(site, event);
        if (rlr_limit_may_warn(site, event)) {
            refusal.level = APLOG_WARNING;
        }
    }
    return refusal;
}

int rlr_browser_check(request_rec *r)
{
    refusal_t refusal;

    if (!is_own_host(r)) {
        refusal = note_refusal(r, "host");
        ap_log_rerror(APLOG_MARK, refusal.level, 0, r,
                      RLR_LOGNO(0204) "refused: Host %s is not a name of this "
                                      "server (ServerName, ServerAlias); %u in "
                                      "the last minute",
                      r->hostname, refusal.count);
        return HTTP_MISDIRECTED_REQUEST;
    }
    if (r->method_number == M_POST && is_cross_site(r)) {
        const char *origin = apr_table_get(r->headers_in, "Origin");

        refusal = note_refusal(r, "origin");
        ap_log_rerror(APLOG_MARK, refusal.level, 0, r,
                      RLR_LOGNO(0205) "refused: a POST of another site's page, "
                                      "Origin %s; %u in the last minute",
                      origin ? origin : "(none)", refusal.count);
        return HTTP_FORBIDDEN;
    }
    return OK;
}
