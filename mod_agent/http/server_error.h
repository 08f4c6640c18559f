/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that httpd itself answers in the API's place (400 for a header that is
 * too long, 401 and 403 of Require, 501, ...): as JSON, like all others. */
#ifndef AGENT_HTTP_SERVER_ERROR_H
#define AGENT_HTTP_SERVER_ERROR_H

/* Registers the hook and the filter; handler is what SetHandler calls the API,
 * a constant. */
void agent_server_error_register(const char *handler);

#endif
