/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that httpd generates for requests of an API (400 for a long header,
 * 401 and 403 of Require, 501, ...), as JSON like the API's own. */
#ifndef AGENT_HTTP_SERVER_ERROR_H
#define AGENT_HTTP_SERVER_ERROR_H

/* Registers the filter and its hook; called with the module's hooks. */
void agent_server_error_register(void);

#endif
