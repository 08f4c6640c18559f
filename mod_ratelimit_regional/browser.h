/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests of browsers the status page refuses: what its reader may do,
 * a page of another site must not do with his address or his password. */
#ifndef RLR_BROWSER_H
#define RLR_BROWSER_H

#include <httpd.h>

/*
 * OK; HTTP_MISDIRECTED_REQUEST for a Host that is not one of the server's, to
 * which DNS rebinding may have led; HTTP_FORBIDDEN for a POST of another site's
 * page. Logs what it refuses. Clients that are no browsers send none of the
 * headers of the second case.
 */
int rlr_browser_check(request_rec *r);

#endif
