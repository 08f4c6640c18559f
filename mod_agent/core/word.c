/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a fixed set; see word.h. */
#include "word.h"

#include <string.h>

#include <apr_strings.h>

const char *const agent_word_strategies[] = {"reject", "enqueue", "interrupt",
                                             "rollback", NULL};

const char *agent_word_find(const char *text, const char *const *words)
{
    while (*words != NULL && strcmp(text, *words) != 0) {
        words++;
    }
    return *words;
}

const char *agent_word_print(const char *const *words, apr_pool_t *pool)
{
    const char *text = words[0];

    /* Bounded: a table of the source. */
    for (int i = 1; words[i] != NULL; i++) {
        text = apr_pstrcat(pool, text, words[i + 1] ? ", " : " or ", words[i],
                           NULL);
    }
    return text;
}
