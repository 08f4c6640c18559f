/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses cross-site requests to the status page. Any page that is open in a
 * browser can make it send requests, with its user's address and password; a
 * page of another site must not read the status page or reset keys. */
#ifndef RLR_BROWSER_H
#define RLR_BROWSER_H

#include <httpd.h>

/*
 * Returns OK if the request is accepted, HTTP_MISDIRECTED_REQUEST if its Host
 * is not a name of this server (with DNS rebinding the name of a foreign page
 * resolves to this server's address), and HTTP_FORBIDDEN for a cross-site
 * POST, which browsers indicate with Origin and Sec-Fetch-Site; other clients
 * do not send these headers. Refusals are logged, at level warning once a
 * minute and at level info otherwise.
 */
int rlr_browser_check(request_rec *r);

#endif
