/* SPDX-License-Identifier: Apache-2.0 */
/* `httpd -t -D DUMP_RATELIMIT`: the rules of all hosts that share a store. */
#ifndef RLR_DUMP_STORE_H
#define RLR_DUMP_STORE_H

#include <httpd.h>

/* Prints which hosts have the same rules, and the differences of the others;
 * nothing without a store. */
void rlr_dump_store(server_rec *main_server, apr_pool_t *pool);

#endif
