/* SPDX-License-Identifier: Apache-2.0 */
/* The rate-limit keys: what a rule may count by. keys.def has a row for each.
 * No httpd here. */
#ifndef RLR_KEY_H
#define RLR_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include <apr_pools.h>

/* The longest value of any key's header. */
#define RLR_KEY_VALUE_MAX 256

typedef enum rlr_key_t {
#define KEY(id, ...) RLR_KEY_##id,
#include "keys.def"
#undef KEY
    RLR_KEYS /* the number of keys */
} rlr_key_t;

/* A row of keys.def, which explains the members. */
typedef struct rlr_key_row_t {
    const char *word;
    const char *header; /* or NULL */
    size_t max;
    bool by_address;
    const char *field;
    const char *label;
} rlr_key_row_t;

extern const rlr_key_row_t rlr_keys[RLR_KEYS];

/* Finds the key of a word; false if there is none. */
bool rlr_key_parse(rlr_key_t *key, const char *word);

/* Whether every request that carries `later` carries `first` too. */
bool rlr_key_covers(rlr_key_t first, rlr_key_t later);

/* "key=api-key, key=user+ip or key=ip", for error messages: all keys, or those
 * with a header. In pool. */
const char *rlr_key_list(bool with_header, apr_pool_t *pool);

#endif
