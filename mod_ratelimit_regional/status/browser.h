/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests of browsers the status page refuses. A browser sends requests
 * for any page that its user has open, with the user's address and password: a
 * page of another site must not read the status page or reset keys that way. */
#ifndef RLR_BROWSER_H
#define RLR_BROWSER_H

#include <httpd.h>

/*
 * Returns OK if the request may go on. Returns HTTP_MISDIRECTED_REQUEST if its
 * Host is not a name of this server: with DNS rebinding, the name of a foreign
 * page resolves to this server's address. Returns HTTP_FORBIDDEN if a page of
 * another site sent the POST, which browsers say in Origin and Sec-Fetch-Site;
 * other clients do not send these headers. Refusals are logged, at level
 * warning once a minute and at level info otherwise.
 */
int rlr_browser_check(request_rec *r);

#endif
