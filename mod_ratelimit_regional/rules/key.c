/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of keys.def, and their words. */
#include "key.h"

#include <string.h>

#include <apr_strings.h>

const rlr_key_row_t rlr_keys[RLR_KEYS] = {
#define KEY(id, ...) [RLR_KEY_##id] = {__VA_ARGS__},
#include "keys.def"
#undef KEY
};

#define KEY(id, word, header, max, ...)                                        \
    _Static_assert((max) <= RLR_KEY_VALUE_MAX, "key=" word);
#include "keys.def"
#undef KEY

bool rlr_key_parse(rlr_key_t *key, const char *word)
{
    for (int i = 0; i < RLR_KEYS; i++) {
        if (strcmp(word, rlr_keys[i].word) == 0) {
            *key = (rlr_key_t)i;
            return true;
        }
    }
    return false;
}

bool rlr_key_covers(rlr_key_t first, rlr_key_t later)
{
    const char *header = rlr_keys[first].header;
    const char *other = rlr_keys[later].header;

    return header == NULL || (other != NULL && strcmp(header, other) == 0);
}

const char *rlr_key_list(bool with_header, apr_pool_t *pool)
{
    const char *list = "";
    int left = 0;

    for (int i = 0; i < RLR_KEYS; i++) {
        left += !with_header || rlr_keys[i].header != NULL;
    }
    /* Bounded: the rows of keys.def. */
    for (int i = 0; i < RLR_KEYS; i++) {
        if (!with_header || rlr_keys[i].header != NULL) {
            left--;
            list = apr_pstrcat(pool, list, "key=", rlr_keys[i].word,
                               left > 1        ? ", "
                                   : left == 1 ? " or "
                                               : "",
                               NULL);
        }
    }
    return list;
}
