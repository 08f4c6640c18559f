/* SPDX-License-Identifier: Apache-2.0 */
/* What every httpd-facing file of mod_agent needs: the module's record for
 * logging, and message numbers. messages.md lists the numbers. */
#ifndef AGENT_PRIVATE_H
#define AGENT_PRIVATE_H

#include <httpd.h>
#include <http_config.h>
#include <http_log.h>

#define AGENT_VERSION "0.1.0"

#define AGENT_LOGNO(number) "AGT" #number ": "

/* The one symbol that leaves the module: httpd loads with RTLD_GLOBAL. */
extern module AP_MODULE_DECLARE_DATA agent_module
    __attribute__((visibility("default")));
APLOG_USE_MODULE(agent);

#endif
