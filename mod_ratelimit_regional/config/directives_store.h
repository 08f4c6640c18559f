/* SPDX-License-Identifier: Apache-2.0 */
/* The directives of the store: parsers for the table in directives.c. */
#ifndef RLR_DIRECTIVES_STORE_H
#define RLR_DIRECTIVES_STORE_H

#include <httpd.h>
#include <http_config.h>

/* Each returns NULL, or the error for httpd. */
const char *rlr_directives_store(cmd_parms *cmd, void *dir, const char *arg);
const char *rlr_directives_store_hosts(cmd_parms *cmd, void *dir,
                                       const char *arg);
const char *rlr_directives_store_timeout(cmd_parms *cmd, void *dir,
                                         const char *arg);
const char *rlr_directives_store_failure(cmd_parms *cmd, void *dir,
                                         const char *arg);
const char *rlr_directives_store_share_time(cmd_parms *cmd, void *dir,
                                            const char *arg);
const char *rlr_directives_store_password_file(cmd_parms *cmd, void *dir,
                                               const char *arg);
const char *rlr_directives_store_tls(cmd_parms *cmd, void *dir, int argc,
                                     char *const argv[]);

#endif
