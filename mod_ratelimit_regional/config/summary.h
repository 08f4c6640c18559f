/* SPDX-License-Identifier: Apache-2.0 */
/* A text of all that the hosts of a region must have in common to count
 * requests alike. */
#ifndef RLR_SUMMARY_H
#define RLR_SUMMARY_H

#include <httpd.h>

/* Returns the text, in pool: a line for each rule, override, and kind of
 * server; less than RLR_MESSAGE_RULES_BYTES. */
const char *rlr_summary_write(server_rec *main_server, apr_pool_t *pool);

/* Returns the host's name for other hosts and operators, in pool: that of the
 * machine, with the lowest port of Listen, since a machine may have
 * several hosts. */
const char *rlr_summary_name_host(apr_pool_t *pool);

#endif
