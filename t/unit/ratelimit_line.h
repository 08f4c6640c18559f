/* SPDX-License-Identifier: Apache-2.0 */
/* Parses rules of the limiter from lines of a configuration. */
#ifndef AGENT_T_UNIT_RATELIMIT_LINE_H
#define AGENT_T_UNIT_RATELIMIT_LINE_H

#include "check.h"

#include <string.h>

#include <apr_strings.h>

#include "../../mod_ratelimit_regional/rules/rule.h"

#define LINE_WORDS_MAX 16

/* Words of a line as httpd splits it; '...' is one word. */
static int line_split(char *words[LINE_WORDS_MAX], const char *line,
                      apr_pool_t *pool)
{
    char *rest = apr_pstrdup(pool, line);
    int count = 0;

    while (*(rest += strspn(rest, " ")) != '\0') {
        const char *end = *rest == '\'' ? "'" : " ";

        assert_true(count < LINE_WORDS_MAX);
        rest += *rest == '\'';
        words[count++] = rest;
        rest += strcspn(rest, end);
        if (*rest != '\0') {
            *rest++ = '\0';
        }
    }
    return count;
}

static const rlr_rule_t *line_parse(const char *line, apr_pool_t *pool)
{
    char *words[LINE_WORDS_MAX];
    const char *problem = "";
    rlr_rule_t *rule;

    if (rlr_rule_parse(&rule, line_split(words, line, pool), words, &problem,
                       pool)
        != APR_SUCCESS) {
        fail_msg("%s: %s", line, problem);
    }
    return rule;
}

#endif
