/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects cross-site requests and foreign names, after the Fetch Standard
 * (Origin) and Fetch Metadata (Sec-Fetch-Site). mod_agent has its own check
 * (http/browser.c): either module works without the other, so they share no
 * code.
 */
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
#include "../config/vhosts.h"
#include "../decision/warning.h"
#include "../private.h"

/* How a refusal is logged. */
typedef struct refusal_t {
    int level;
    uint32_t count; /* of its kind in the last minute */
} refusal_t;

/* Whether the host is the address that the client has connected to, or
 * "localhost" on a local address: DNS cannot redirect these. Since the modules
 * share no code, mod_agent/http/browser.c has this and the next function too.
 */
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

/* Compares names as httpd does, without the port, which a proxy may have
 * changed. HTTP/1.0 has no Host, and no browser uses it. */
static bool is_own_host(request_rec *r)
{
    return r->hostname == NULL
        || ap_matches_request_vhost(r, r->hostname, r->server->port)
        || is_local_name(r->connection, r->hostname);
}

/* Compares with scheme, host and port of the request. Its Host has been
 * checked. */
static bool is_own_origin(const request_rec *r, const char *origin)
{
    const char *host = apr_table_get(r->headers_in, "Host");

    return host != NULL
        && strcasecmp(
               origin,
               apr_pstrcat(r->pool, ap_http_scheme(r), "://", host, NULL))
        == 0;
}

/* "none" is a navigation by the user. Behind a proxy that terminates TLS or
 * changes the Host, only the browser knows the origin. */
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

/* One warning a minute: any client that reaches the page can cause it. */
static refusal_t count_refusal(request_rec *r, const char *event)
{
    const rlr_vhost_t *own = rlr_config_get(r->server)->vhost;
    const rlr_vhost_t *vhost = own ? own
                                   : rlr_vhosts_find(ap_server_conf, NULL);
    refusal_t refusal = {APLOG_INFO, 1};

    if (vhost != NULL) {
        refusal.count = rlr_warning_count(vhost, event);
        if (rlr_warning_is_due(vhost, event)) {
            refusal.level = APLOG_WARNING;
        }
    }
    return refusal;
}

int rlr_browser_check(request_rec *r)
{
    refusal_t refusal;

    if (!is_own_host(r)) {
        refusal = count_refusal(r, "host");
        ap_log_rerror(APLOG_MARK, refusal.level, 0, r,
                      RLR_LOGNO(0204) "refused: Host %s is not a name of this "
                                      "server (ServerName, ServerAlias); %u in "
                                      "the last minute",
                      r->hostname, refusal.count);
        return HTTP_MISDIRECTED_REQUEST;
    }
    if (r->method_number == M_POST && is_cross_site(r)) {
        const char *origin = apr_table_get(r->headers_in, "Origin");

        refusal = count_refusal(r, "origin");
        ap_log_rerror(APLOG_MARK, refusal.level, 0, r,
                      RLR_LOGNO(0205) "refused: a cross-site POST, "
                                      "Origin %s; %u in the last minute",
                      origin ? origin : "(none)", refusal.count);
        return HTTP_FORBIDDEN;
    }
    return OK;
}
