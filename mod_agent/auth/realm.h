/* SPDX-License-Identifier: Apache-2.0 */
/* The realm of the challenge of a 401. */
#ifndef AGENT_AUTH_REALM_H
#define AGENT_AUTH_REALM_H

#include <httpd.h>

/* The path below which a platform host has its deployments. */
#define AGENT_DEPLOYMENTS_PATH "/deployments/"

/*
 * Returns the AuthName of the request's location, in r->pool; NULL: it has
 * none, or the location is that of a deployment of a platform host, which the
 * realm would disclose.
 */
const char *agent_realm_of(request_rec *r);

#endif
