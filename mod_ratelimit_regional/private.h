/* SPDX-License-Identifier: Apache-2.0 */
/* For all files that include httpd: the module record, which httpd's log macros
 * need, and the message numbers that messages.md lists. */
#ifndef RLR_PRIVATE_H
#define RLR_PRIVATE_H

#include <httpd.h>
#include <http_config.h>
#include <http_log.h>

#define RLR_VERSION "0.1.0"

/* The handler of the status page, as SetHandler names it. */
#define RLR_STATUS_HANDLER "ratelimit-status"

#define RLR_LOGNO(number) "RLR" #number ": "

/* The only exported symbol: httpd loads with RTLD_GLOBAL. */
extern module AP_MODULE_DECLARE_DATA ratelimit_regional_module
    __attribute__((visibility("default")));
APLOG_USE_MODULE(ratelimit_regional);

#endif
