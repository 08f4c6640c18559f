/* SPDX-License-Identifier: Apache-2.0 */
/* Text inside JSON. */
#ifndef RLR_TEXT_H
#define RLR_TEXT_H

#include <apr_pools.h>

/* The text as a JSON string with its quotes, in pool. Bytes that are not UTF-8
 * become U+FFFD. */
const char *rlr_text_json(const char *text, apr_pool_t *pool);

#endif
