/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What web pages may do with the API. A browser sends requests for any page
 * that its user opens, from inside the user's network and with the rights of
 * the browser. Headers that pages cannot set (Origin, Sec-Fetch-*) tell which
 * page it was. Other clients do not send them and are not affected.
 */
#ifndef AGENT_HTTP_BROWSER_H
#define AGENT_HTTP_BROWSER_H

#include "call.h"

/*
 * Refuses, with call->err set: a Host that is not one of the server's
 * (MISDIRECTED), a request of another site's page that is not GET, HEAD or
 * OPTIONS (CROSS_SITE), a page's body that is not application/json
 * (CONTENT_TYPE). Sets call->is_cross_site, and the CORS headers of the
 * response for an origin of AgentAllowOrigin.
 */
apr_status_t agent_browser_check(agent_call_t *call);

/*
 * Whether this is the question of a browser, before a request of an allowed
 * origin, what it may send (a CORS preflight); the response's headers say it
 * then. To be asked after agent_browser_check().
 */
bool agent_browser_is_preflight(const agent_call_t *call);

/* Sets the CORS headers of an error response that httpd itself makes. */
void agent_browser_share(request_rec *r);

#endif
