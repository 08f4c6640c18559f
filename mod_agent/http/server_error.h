/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that httpd generates for requests of the API (400 for a long header,
 * 401 and 403 of Require, 501, ...), as JSON like the API's own. */
#ifndef AGENT_HTTP_SERVER_ERROR_H
#define AGENT_HTTP_SERVER_ERROR_H

/* Called once, when the module registers its hooks. handler: the API's name in
 * SetHandler, a constant. */
void agent_server_error_register(const char *handler);

#endif
