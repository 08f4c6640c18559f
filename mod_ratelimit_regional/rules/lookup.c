/* SPDX-License-Identifier: Apache-2.0 */
/* Builds and finds lists of patterns by a byte of the path. */
#include "lookup.h"

#include <limits.h>
#include <stdbool.h>

#define BYTES (UCHAR_MAX + 1)

/* Lists for paths as sent and for stripped paths. Bytes of no pattern share
 * one list: the patterns for all bytes. */
struct rlr_lookup_t {
    const rlr_candidate_t *plain[BYTES];
    const rlr_candidate_t *stripped[BYTES];
};

/* ---- Building ---- */

/* The patterns of a list: those for all bytes, for this byte, and for that of
 * the paths before they were stripped; 0 = none. */
typedef struct filter_t {
    char byte;
    char full_byte;
} filter_t;

static bool has_pattern(filter_t filter, const rlr_match_t *match)
{
    char second = rlr_match_second(match);

    return second == '\0' || second == filter.byte
        || second == filter.full_byte;
}

/* candidates: all patterns. */
static const rlr_candidate_t *make_list(const apr_array_header_t *candidates,
                                        filter_t filter, apr_pool_t *pool)
{
    static const rlr_candidate_t end = {NULL, 0};
    apr_array_header_t *list = apr_array_make(pool, candidates->nelts + 1,
                                              sizeof(rlr_candidate_t));

    for (int i = 0; i < candidates->nelts; i++) {
        const rlr_candidate_t *candidate = &APR_ARRAY_IDX(candidates, i,
                                                          rlr_candidate_t);

        if (has_pattern(filter, candidate->match)) {
            APR_ARRAY_PUSH(list, rlr_candidate_t) = *candidate;
        }
    }
    APR_ARRAY_PUSH(list, rlr_candidate_t) = end;
    return (const rlr_candidate_t *)list->elts;
}

static void make_lists(const rlr_candidate_t *lists[BYTES],
                       const apr_array_header_t *candidates, char full_byte,
                       apr_pool_t *pool)
{
    filter_t filter = {'\0', full_byte};
    const rlr_candidate_t *rest = make_list(candidates, filter, pool);

    for (int byte = 0; byte < BYTES; byte++) {
        lists[byte] = rest;
    }
    for (int i = 0; i < candidates->nelts; i++) {
        filter.byte = rlr_match_second(
            APR_ARRAY_IDX(candidates, i, rlr_candidate_t).match);
        if (lists[(unsigned char)filter.byte] == rest && filter.byte != '\0') {
            lists[(unsigned char)filter.byte] = make_list(candidates, filter,
                                                          pool);
        }
    }
}

static void add_patterns(apr_array_header_t *candidates, const rlr_rule_t *rule,
                         int index)
{
    for (int i = 0; i < rule->matches->nelts; i++) {
        rlr_candidate_t *candidate = apr_array_push(candidates);

        candidate->match = &APR_ARRAY_IDX(rule->matches, i, rlr_match_t);
        candidate->rule = index;
    }
}

const rlr_lookup_t *rlr_lookup_make(const rlr_rule_t *const *rules, int count,
                                    const char *strip_prefix, apr_pool_t *pool)
{
    rlr_lookup_t *lookup = apr_palloc(pool, sizeof(*lookup));
    apr_array_header_t *candidates = apr_array_make(pool, count,
                                                    sizeof(rlr_candidate_t));

    for (int i = 0; i < count; i++) {
        add_patterns(candidates, rules[i], i);
    }
    make_lists(lookup->plain, candidates, '\0', pool);
    make_lists(lookup->stripped, candidates,
               strip_prefix != NULL ? strip_prefix[1] : '\0', pool);
    return lookup;
}

/* ---- Finding ---- */

const rlr_candidate_t *rlr_lookup_find(const rlr_lookup_t *lookup,
                                       const rlr_target_t *target)
{
    unsigned char byte = target->length > 0 ? (unsigned char)target->path[1]
                                            : 0;

    return target->full == target->path ? lookup->plain[byte]
                                        : lookup->stripped[byte];
}
