/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a fixed set, as a NULL-terminated table. */
#ifndef AGENT_CORE_WORD_H
#define AGENT_CORE_WORD_H

#include <apr_pools.h>

/* The strategies for a second run on a busy thread. The first is the default.
 */
extern const char *const agent_word_strategies[];

/* Returns the element of words that equals text; NULL if there is none. */
const char *agent_word_find(const char *text, const char *const *words);

/* Returns "a, b or c", in pool, for messages. words has at least one. */
const char *agent_word_print(const char *const *words, apr_pool_t *pool);

#endif
