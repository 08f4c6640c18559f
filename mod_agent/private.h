/* SPDX-License-Identifier: Apache-2.0 */
/* The module's record, which httpd's log macros need, and the numbers of log
 * lines, which messages.md lists. */
#ifndef AGENT_PRIVATE_H
#define AGENT_PRIVATE_H

#include <httpd.h>
#include <http_config.h>
#include <http_log.h>

/* The APIs, as SetHandler names them. */
#define AGENT_SERVER_HANDLER   "agent"
#define AGENT_PLATFORM_HANDLER "agent-platform"

#define AGENT_LOGNO(number) "AGT" #number ": "

/* The only exported symbol: httpd loads modules with RTLD_GLOBAL. */
extern module AP_MODULE_DECLARE_DATA agent_module
    __attribute__((visibility("default")));
APLOG_USE_MODULE(agent);

#endif
