/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restricts what web pages may do with the API. A browser sends requests for
 * any page that its user opens, from the user's network and with the browser's
 * credentials. Origin and Sec-Fetch-*, which pages cannot set, identify the
 * page. Clients other than browsers do not send them and are not affected.
 */
#ifndef AGENT_HTTP_BROWSER_H
#define AGENT_HTTP_BROWSER_H

#include "call.h"

/*
 * Sets call->is_cross_site, and the CORS headers of the response for an origin
 * of AgentAllowOrigin. Errors: MISDIRECTED for a Host that is not a name of the
 * server, CROSS_SITE for a cross-site request other than GET, HEAD or OPTIONS,
 * CONTENT_TYPE for a page's body that is not application/json.
 */
apr_status_t agent_browser_check(agent_call_t *call);

/*
 * True for a CORS preflight of an allowed origin; sets the headers of its
 * response. Called after agent_browser_check().
 */
bool agent_browser_is_preflight(const agent_call_t *call);

/* Sets the CORS headers of an error response that httpd generates. */
void agent_browser_set_cors(request_rec *r);

#endif
