/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL array literals; see query.h. */
#include "query.h"

#include <string.h>

#include <apr_strings.h>
#include <apr_tables.h>

const char *agent_db_array(const char *const *texts, apr_size_t count,
                           apr_pool_t *pool)
{
    apr_array_header_t *parts = apr_array_make(pool, (int)count,
                                               sizeof(const char *));

    for (apr_size_t i = 0; i < count; i++) {
        char *quoted = apr_palloc(pool, 2 * strlen(texts[i]) + 3);
        char *p = quoted;

        *p++ = '"';
        for (const char *c = texts[i]; *c != '\0'; c++) {
            if (*c == '"' || *c == '\\') {
                *p++ = '\\';
            }
            *p++ = *c;
        }
        *p++ = '"';
        *p = '\0';
        APR_ARRAY_PUSH(parts, const char *) = quoted;
    }
    return apr_pstrcat(pool, "{", apr_array_pstrcat(pool, parts, ','), "}",
                       NULL);
}

const char *agent_db_text_array(const char *const *texts, apr_pool_t *pool)
{
    apr_size_t count = 0;

    if (texts == NULL) {
        return NULL;
    }
    while (texts[count] != NULL) {
        count++;
    }
    return agent_db_array(texts, count, pool);
}
