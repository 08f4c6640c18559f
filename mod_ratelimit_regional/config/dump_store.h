/* SPDX-License-Identifier: Apache-2.0 */
/* `httpd -t -D DUMP_RATELIMIT`: the rules of all hosts that share a store. */
#ifndef RLR_DUMP_STORE_H
#define RLR_DUMP_STORE_H

#include "config.h"

/* Returns the rules in order, a line for each, in pool. */
const char *rlr_dump_store_rules(const rlr_global_t *global, apr_pool_t *pool);

/* Prints which hosts have the same rules, and the differences of the others;
 * nothing without a store. */
void rlr_dump_store(const rlr_global_t *global, apr_pool_t *pool);

#endif
