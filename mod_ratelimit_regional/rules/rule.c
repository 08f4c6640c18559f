/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and compares rules. */
#include "rule.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

#include "duration.h"

static const char key_word[] = "key=";

static bool is_name_part(const char *text, size_t length)
{
    if (length == 0 || length > RLR_NAME_MAX || !apr_isalnum(text[0])) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (!apr_isalnum(text[i]) && text[i] != '-' && text[i] != '_') {
            return false;
        }
    }
    return true;
}

bool rlr_rule_is_name(const char *text)
{
    return is_name_part(text, strlen(text));
}

/* ---- Limits ---- */

/* Digits only, from 1 to high; *end is the first byte after them. */
static bool read_number(uint32_t *out, const char *text, uint32_t high,
                        const char **end)
{
    uint32_t value = 0;

    for (*end = text; apr_isdigit(**end); ++*end) {
        value = value * 10 + (uint32_t)(**end - '0');
        if (value > high) {
            return false;
        }
    }
    *out = value;
    return *end > text && value > 0;
}

/* Whole seconds in range. */
static bool read_interval(uint32_t *out, const char *text)
{
    uint64_t ms;

    if (!rlr_duration_parse(&ms, text) || ms < 1000 || ms % 1000 != 0
        || ms / 1000 > RLR_LIMIT_INTERVAL_SEC_MAX) {
        return false;
    }
    *out = (uint32_t)(ms / 1000);
    return true;
}

apr_status_t rlr_rule_parse_limit(rlr_limit_t *limit, const char *text,
                                  const char **problem, apr_pool_t *pool)
{
    const char *end;

    if (read_number(&limit->count, text, RLR_LIMIT_COUNT_MAX, &end)
        && *end == '/' && read_interval(&limit->interval_sec, end + 1)) {
        return APR_SUCCESS;
    }
    *problem = apr_psprintf(pool,
                            "expected COUNT/INTERVAL, 1 to %u requests in 1 to "
                            "%u seconds (10, 10s, 1min, 1h, 1d), got '%s'",
                            RLR_LIMIT_COUNT_MAX, RLR_LIMIT_INTERVAL_SEC_MAX,
                            text);
    return APR_EINVAL;
}

const rlr_limit_t *rlr_rule_limit(const rlr_rule_t *rule, const char *region)
{
    for (int i = 0; i < rule->limits->nelts; i++) {
        const rlr_rule_limit_t *entry = &APR_ARRAY_IDX(rule->limits, i,
                                                       rlr_rule_limit_t);

        if (strcmp(entry->region, region) == 0) {
            return &entry->limit;
        }
    }
    return NULL;
}

/* ---- Parsing ---- */

/* The words left to parse. */
typedef struct words_t {
    char *const *next;
    int left;
} words_t;

static const char *take_word(words_t *words)
{
    words->left--;
    return *words->next++;
}

static bool is_key_word(const char *word)
{
    return strncmp(word, key_word, sizeof(key_word) - 1) == 0;
}

static apr_status_t read_matches(rlr_rule_t *rule, words_t *words,
                                 const char **problem, apr_pool_t *pool)
{
    rule->matches = apr_array_make(pool, words->left, sizeof(rlr_match_t));
    while (words->left > 0 && !is_key_word(*words->next)) {
        apr_status_t rv = rlr_match_parse(apr_array_push(rule->matches),
                                          take_word(words), problem, pool);

        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    if (rule->matches->nelts == 0) {
        *problem = "expected \"[METHOD ]PATH\" after the name, got none";
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}

static apr_status_t read_key(rlr_rule_t *rule, words_t *words,
                             const char **problem, apr_pool_t *pool)
{
    const char *word = words->left > 0 ? take_word(words) : NULL;

    if (word != NULL
        && rlr_key_parse(&rule->key, word + sizeof(key_word) - 1)) {
        return APR_SUCCESS;
    }
    *problem = apr_psprintf(pool, "expected %s after the paths, got %s",
                            rlr_key_list(false, pool),
                            word ? apr_psprintf(pool, "'%s'", word) : "none");
    return APR_EINVAL;
}

/* "REGION=COUNT/INTERVAL" with its '=' at sign. */
static apr_status_t read_limit(rlr_rule_t *rule, const char *word,
                               const char *sign, const char **problem,
                               apr_pool_t *pool)
{
    rlr_rule_limit_t *entry;
    const char *region = apr_pstrmemdup(pool, word, (apr_size_t)(sign - word));
    apr_status_t rv;

    if (is_key_word(word) || !rlr_rule_is_name(region)) {
        *problem = apr_psprintf(
            pool, "expected REGION=COUNT/INTERVAL, got '%s'", word);
        return APR_EINVAL;
    }
    if (rlr_rule_limit(rule, region) != NULL) {
        *problem = apr_psprintf(pool, "expected each region once, got '%s'",
                                word);
        return APR_EINVAL;
    }
    entry = apr_array_push(rule->limits);
    entry->region = region;
    rv = rlr_rule_parse_limit(&entry->limit, sign + 1, problem, pool);
    if (rv != APR_SUCCESS) {
        *problem = apr_psprintf(pool, "%s (region %s)", *problem, region);
    }
    return rv;
}

static apr_status_t read_limits(rlr_rule_t *rule, words_t *words,
                                const char **problem, apr_pool_t *pool)
{
    rule->limits = apr_array_make(pool, 4, sizeof(rlr_rule_limit_t));
    while (words->left > 0) {
        const char *sign = strchr(*words->next, '=');
        apr_status_t rv;

        if (sign == NULL) {
            break;
        }
        rv = read_limit(rule, take_word(words), sign, problem, pool);
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    if (rule->limits->nelts == 0) {
        *problem = apr_psprintf(pool,
                                "expected REGION=COUNT/INTERVAL after the key, "
                                "got %s",
                                words->left > 0
                                    ? apr_psprintf(pool, "'%s'", *words->next)
                                    : "none");
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}

/* The last word is the category, quoted if it has blanks. */
static apr_status_t read_category(rlr_rule_t *rule, words_t *words,
                                  const char **problem, apr_pool_t *pool)
{
    rule->category = words->left > 0 ? apr_pstrdup(pool, take_word(words)) : "";
    if (words->left > 0) {
        *problem = apr_psprintf(pool,
                                "expected nothing after the category \"%s\" "
                                "(quotes around it?), got '%s'",
                                rule->category, *words->next);
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}

static apr_status_t read_rule(rlr_rule_t *rule, words_t *words,
                              const char **problem, apr_pool_t *pool)
{
    apr_status_t rv = read_matches(rule, words, problem, pool);

    if (rv == APR_SUCCESS) {
        rv = read_key(rule, words, problem, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = read_limits(rule, words, problem, pool);
    }
    if (rv == APR_SUCCESS) {
        rv = read_category(rule, words, problem, pool);
    }
    return rv;
}

apr_status_t rlr_rule_parse(rlr_rule_t **rule, int argc, char *const argv[],
                            const char **problem, apr_pool_t *pool)
{
    words_t words = {argv, argc};
    const char *name = argc > 0 ? take_word(&words) : "";
    apr_status_t rv;

    if (!rlr_rule_is_name(name)) {
        *problem = apr_psprintf(pool,
                                "expected a name of letters, digits, - and _, "
                                "at most %d, got '%s'",
                                RLR_NAME_MAX, name);
        return APR_EINVAL;
    }
    *rule = apr_pcalloc(pool, sizeof(**rule));
    (*rule)->name = apr_pstrdup(pool, name);
    rv = read_rule(*rule, &words, problem, pool);
    if (rv != APR_SUCCESS) {
        *problem = apr_psprintf(pool, "%s: %s", name, *problem);
    }
    return rv;
}

/* ---- Comparing ---- */

static bool rule_covers(const rlr_rule_t *first, const rlr_match_t *match,
                        bool head_as_get, apr_pool_t *pool)
{
    for (int i = 0; i < first->matches->nelts; i++) {
        if (rlr_match_covers(&APR_ARRAY_IDX(first->matches, i, rlr_match_t),
                             match, head_as_get, pool)) {
            return true;
        }
    }
    return false;
}

const rlr_rule_t *rlr_rule_find_cover(const rlr_rule_t *const *earlier,
                                      int count, const rlr_rule_t *rule,
                                      int index, bool head_as_get,
                                      apr_pool_t *pool)
{
    const rlr_match_t *match = &APR_ARRAY_IDX(rule->matches, index,
                                              rlr_match_t);

    for (int i = 0; i < count; i++) {
        if (rlr_key_covers(earlier[i]->key, rule->key)
            && rule_covers(earlier[i], match, head_as_get, pool)) {
            return earlier[i];
        }
    }
    return NULL;
}
