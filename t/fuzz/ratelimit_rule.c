/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/rules/rule.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/key.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/duration.c */
/* OBJECTS: ../mod_ratelimit_regional/rules/match.c */
/* The rule notation, one word per line: a refused rule has an error, an
 * accepted one is complete and covers itself. */
#include "fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "../../mod_ratelimit_regional/rules/rule.h"

#define MAX_WORDS 64

static int split(char *words[MAX_WORDS], char *text)
{
    int count = 0;

    while (text != NULL && count < MAX_WORDS) {
        words[count++] = text;
        text = strchr(text, '\n');
        if (text != NULL) {
            *text++ = '\0';
        }
    }
    return count;
}

static void check_limits(const rlr_rule_t *rule)
{
    must(rule->limits->nelts > 0);
    for (int i = 0; i < rule->limits->nelts; i++) {
        const rlr_rule_limit_t *entry = &APR_ARRAY_IDX(rule->limits, i,
                                                       rlr_rule_limit_t);

        must(entry->limit.count >= 1
             && entry->limit.count <= RLR_LIMIT_COUNT_MAX);
        must(entry->limit.interval_sec >= 1
             && entry->limit.interval_sec <= RLR_LIMIT_INTERVAL_SEC_MAX);
        must(rlr_rule_limit(rule, entry->region) == &entry->limit);
    }
}

static void check_rule(const rlr_rule_t *rule, apr_pool_t *pool)
{
    must(rlr_rule_is_name(rule->name) && rule->matches->nelts > 0
         && rule->category != NULL);
    check_limits(rule);
    for (int i = 0; i < rule->matches->nelts; i++) {
        must(rlr_rule_find_cover(&rule, 1, rule, i, false, pool) == rule);
    }
}

static void examine(const char *text, size_t length, apr_pool_t *pool)
{
    char *words[MAX_WORDS];
    const char *problem = NULL;
    rlr_rule_t *rule;
    int count = split(words, apr_pstrdup(pool, text));

    if (rlr_rule_parse(&rule, count, words, &problem, pool) == APR_SUCCESS) {
        check_rule(rule, pool);
    }
    else {
        must(problem != NULL && strstr(problem, "expected") != NULL);
    }
}
