/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and tests rules; see rule.h. */
#include "rule.h"

#include <string.h>

#include <apr_lib.h>
#include <apr_strings.h>

static const char *const key_names[] = {"ip", "api-key", "user+ip"};
#define KEY_COUNT (sizeof(key_names) / sizeof(key_names[0]))

static const char key_word[] = "key=";

const char *rlr_rule_key_name(rlr_key_t key)
{
    return key_names[key];
}

static bool parse_key(rlr_key_t *key, const char *text)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(text, key_names[i]) == 0) {
            *key = (rlr_key_t)i;
            return true;
        }
    }
    return false;
}

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

/* Digits only, from 1 to high; *end is behind them. */
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

apr_status_t rlr_rule_parse_limit(rlr_limit_t *limit, const char *text,
                                  const char **problem, apr_pool_t *pool)
{
    const char *end;

    if (read_number(&limit->count, text, RLR_LIMIT_COUNT_MAX, &end)
        && *end == '/'
        && read_number(&limit->interval_sec, end + 1,
                       RLR_LIMIT_INTERVAL_SEC_MAX, &end)
        && *end == '\0') {
        return APR_SUCCESS;
    }
    *problem = apr_psprintf(pool,
                            "expected COUNT/SECONDS, 1 to %u requests in 1 to "
                            "%u seconds, got '%s'",
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

/* ---- Reading ---- */

/* The words that are still to be read. */
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
        *problem = "expected \"[METHOD ]PATH\" behind the name, got none";
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}

static apr_status_t read_key(rlr_rule_t *rule, words_t *words,
                             const char **problem, apr_pool_t *pool)
{
    const char *word = words->left > 0 ? take_word(words) : NULL;

    if (word != NULL && parse_key(&rule->key, word + sizeof(key_word) - 1)) {
        return APR_SUCCESS;
    }
    *problem = apr_psprintf(pool,
                            "expected key=api-key, key=user+ip or key=ip "
                            "behind the paths, got %s",
                            word ? apr_psprintf(pool, "'%s'", word) : "none");
    return APR_EINVAL;
}

/* "REGION=COUNT/SECONDS", whose '=' is at sign. */
static apr_status_t read_limit(rlr_rule_t *rule, const char *word,
                               const char *sign, const char **problem,
                               apr_pool_t *pool)
{
    rlr_rule_limit_t *entry;
    const char *region = apr_pstrmemdup(pool, word, (apr_size_t)(sign - word));
    apr_status_t rv;

    if (is_key_word(word) || !rlr_rule_is_name(region)) {
        *problem = apr_psprintf(pool, "expected REGION=COUNT/SECONDS, got '%s'",
                                word);
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
                                "expected REGION=COUNT/SECONDS behind the key, "
                                "got %s",
                                words->left > 0
                                    ? apr_psprintf(pool, "'%s'", *words->next)
                                    : "none");
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}

/* What is left is the category, one word: it is quoted when it has blanks. */
static apr_status_t read_category(rlr_rule_t *rule, words_t *words,
                                  const char **problem, apr_pool_t *pool)
{
    rule->category = words->left > 0 ? apr_pstrdup(pool, take_word(words)) : "";
    if (words->left > 0) {
        *problem = apr_psprintf(pool,
                                "expected nothing behind the category \"%s\" "
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

/* Whether a request that has the later rule's key has the first one's too. */
static bool key_covers(rlr_key_t first, rlr_key_t later)
{
    return first == RLR_KEY_IP || first == later;
}

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
        if (key_covers(earlier[i]->key, rule->key)
            && rule_covers(earlier[i], match, head_as_get, pool)) {
            return earlier[i];
        }
    }
    return NULL;
}
