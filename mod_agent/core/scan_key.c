/* SPDX-License-Identifier: Apache-2.0 */
/* Finds equal keys of one object; see scan_key.h. */
#include "scan_key.h"

#include <string.h>

#include <apr_general.h>
#include <apr_siphash.h>

#include "unescape.h"

#define CHUNK_KEYS 512

static agent_scan_key_t *get_key(const agent_scan_keys_t *keys,
                                 apr_size_t number)
{
    return APR_ARRAY_IDX(keys->chunks, number / CHUNK_KEYS, agent_scan_key_t *)
        + number % CHUNK_KEYS;
}

static void begin(agent_scan_keys_t *keys, apr_pool_t *pool)
{
    apr_pool_create(&keys->scratch, pool);
    keys->chunks = apr_array_make(keys->scratch, 16,
                                  sizeof(agent_scan_key_t *));
}

void agent_scan_keys_push(agent_scan_keys_t *keys, agent_scan_key_t key,
                          apr_pool_t *pool)
{
    if (keys->scratch == NULL) {
        begin(keys, pool);
    }
    if (keys->count == (apr_size_t)keys->chunks->nelts * CHUNK_KEYS) {
        APR_ARRAY_PUSH(keys->chunks, agent_scan_key_t *) = apr_palloc(
            keys->scratch, CHUNK_KEYS * sizeof(agent_scan_key_t));
    }
    *get_key(keys, keys->count++) = key;
}

static bool equal(const agent_scan_keys_t *keys, const agent_scan_key_t *one,
                  const agent_scan_key_t *other)
{
    agent_unescape_t a = {.at = keys->text + one->offset};
    agent_unescape_t b = {.at = keys->text + other->offset};
    unsigned left = one->length;

    if (one->length != other->length) {
        return false;
    }
    if (!one->is_escaped && !other->is_escaped) {
        return memcmp(a.at, b.at, left) == 0;
    }
    while (left > 0 && agent_unescape_next(&a) == agent_unescape_next(&b)) {
        left--;
    }
    return left == 0;
}

/* Compares all pairs of at most AGENT_SCAN_KEY_FEW keys. */
static bool differ_few(const agent_scan_keys_t *keys, apr_size_t first,
                       agent_scan_key_t *duplicate)
{
    for (apr_size_t i = first + 1; i < keys->count; i++) {
        const agent_scan_key_t *key = get_key(keys, i);

        for (apr_size_t j = first; j < i; j++) {
            if (equal(keys, key, get_key(keys, j))) {
                *duplicate = *key;
                return false;
            }
        }
    }
    return true;
}

/* SipHash of the unescaped key, in blocks; each begins with the hash of the
 * blocks before it. */
static apr_uint64_t hash_key(const agent_scan_keys_t *keys,
                             const agent_scan_key_t *key)
{
    unsigned char block[256];
    apr_uint64_t hash = 0;
    agent_unescape_t reader = {.at = keys->text + key->offset};
    apr_size_t left = key->length;

    do {
        apr_size_t size = sizeof(block) - sizeof(hash);

        size = left < size ? left : size;
        memcpy(block, &hash, sizeof(hash));
        if (!key->is_escaped) {
            memcpy(block + sizeof(hash), reader.at, size);
            reader.at += size;
        }
        else {
            for (apr_size_t i = 0; i < size; i++) {
                block[sizeof(hash) + i] = agent_unescape_next(&reader);
            }
        }
        hash = apr_siphash24(block, sizeof(hash) + size, keys->secret);
        left -= size;
    } while (left > 0);
    return hash;
}

/* Empties the hash table for `count` keys; returns its size, a power of two and
 * at least 3/2 of the count. */
static apr_size_t prepare_slots(agent_scan_keys_t *keys, apr_size_t count)
{
    apr_size_t size = 2 * AGENT_SCAN_KEY_FEW;

    while (size < count + count / 2) {
        size *= 2;
    }
    if (size > keys->slot_count) {
        if (keys->slot_pool == NULL) {
            apr_generate_random_bytes(keys->secret, sizeof(keys->secret));
            apr_pool_create(&keys->slot_pool, keys->scratch);
        }
        apr_pool_clear(keys->slot_pool);
        keys->slots = apr_palloc(keys->slot_pool, size * sizeof(*keys->slots));
        keys->slot_count = size;
    }
    memset(keys->slots, 0, size * sizeof(*keys->slots));
    return size;
}

static bool differ_many(agent_scan_keys_t *keys, apr_size_t first,
                        agent_scan_key_t *duplicate)
{
    apr_size_t mask = prepare_slots(keys, keys->count - first) - 1;

    for (apr_size_t i = first; i < keys->count; i++) {
        const agent_scan_key_t *key = get_key(keys, i);
        apr_size_t slot = hash_key(keys, key) & mask;

        for (; keys->slots[slot] != 0; slot = (slot + 1) & mask) {
            if (equal(keys, key,
                      get_key(keys, first + keys->slots[slot] - 1))) {
                *duplicate = *key;
                return false;
            }
        }
        keys->slots[slot] = (apr_uint32_t)(i - first + 1);
    }
    return true;
}

bool agent_scan_keys_close(agent_scan_keys_t *keys, apr_size_t first,
                           agent_scan_key_t *duplicate)
{
    bool good = keys->count - first <= AGENT_SCAN_KEY_FEW
        ? differ_few(keys, first, duplicate)
        : differ_many(keys, first, duplicate);

    keys->count = first;
    return good;
}

void agent_scan_keys_release(agent_scan_keys_t *keys)
{
    if (keys->scratch != NULL) {
        apr_pool_destroy(keys->scratch);
        keys->scratch = NULL;
    }
}
