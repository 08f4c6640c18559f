/* SPDX-License-Identifier: Apache-2.0 */
/* JSON strings. */
#ifndef RLR_JSON_H
#define RLR_JSON_H

#include <apr_pools.h>

/* Returns the text as a JSON string with its quotes, in pool. Bytes that are
 * not UTF-8 become U+FFFD. */
const char *rlr_json_quote(const char *text, apr_pool_t *pool);

#endif
