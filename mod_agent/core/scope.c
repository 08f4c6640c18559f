/* SPDX-License-Identifier: Apache-2.0 */
/* The words of scopes; see scope.h. */
#include "scope.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_tables.h>

typedef struct scope_word_t {
    agent_scope_t scope;
    const char *word;
} scope_word_t;

static const scope_word_t scope_words[] = {{AGENT_SCOPE_READ, "read"},
                                           {AGENT_SCOPE_RUN, "run"},
                                           {AGENT_SCOPE_DEPLOY, "deploy"},
                                           {AGENT_SCOPE_ADMIN, "admin"}};

#define SCOPES (sizeof(scope_words) / sizeof(*scope_words))

const char *agent_scope_word(agent_scope_t scope)
{
    for (size_t i = 0; i < SCOPES; i++) {
        if (scope_words[i].scope == scope) {
            return scope_words[i].word;
        }
    }
    return NULL;
}

unsigned agent_scope_read(const char *word)
{
    for (size_t i = 0; i < SCOPES; i++) {
        if (strcmp(scope_words[i].word, word) == 0) {
            return (unsigned)scope_words[i].scope;
        }
    }
    return 0;
}

const char *agent_scope_print(unsigned scopes, apr_pool_t *pool)
{
    apr_array_header_t *words = apr_array_make(pool, SCOPES,
                                               sizeof(const char *));

    /* Bounded: the scopes. */
    for (size_t i = 0; i < SCOPES; i++) {
        if ((scopes & (unsigned)scope_words[i].scope) != 0) {
            APR_ARRAY_PUSH(words, const char *) = apr_pstrcat(
                pool, "\"", scope_words[i].word, "\"", NULL);
        }
    }
    return apr_pstrcat(pool, "[", apr_array_pstrcat(pool, words, ','), "]",
                       NULL);
}
