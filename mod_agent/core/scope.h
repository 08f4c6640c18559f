/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: what an API key permits, and what a route requires. */
#ifndef AGENT_CORE_SCOPE_H
#define AGENT_CORE_SCOPE_H

#include <apr_pools.h>

/* Each route needs one; a key grants a set. None includes another. */
typedef enum agent_scope_t {
    /* For a route that needs no key. 0 is not a scope, so that a route without
     * a scope is noticed. */
    AGENT_SCOPE_NONE = 1,
    AGENT_SCOPE_READ = 2,
    AGENT_SCOPE_RUN = 4,
    AGENT_SCOPE_DEPLOY = 8,
    AGENT_SCOPE_ADMIN = 16,
    /* For a route that any key may use, since each key grants at least one of
     * these. */
    AGENT_SCOPE_ANY = 30
} agent_scope_t;

/* Returns the word of a scope, "read" for example; NULL: not a scope that a key
 * may grant. */
const char *agent_scope_word(agent_scope_t scope);

/* Returns the scope of a word; 0: any other text. */
unsigned agent_scope_read(const char *word);

/* Returns the words of a set as a JSON array, in pool. */
const char *agent_scope_print(unsigned scopes, apr_pool_t *pool);

#endif
