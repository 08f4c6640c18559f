/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of the open objects of a scan, to find duplicates; for scan.c only.
 *
 * Memory: 8 bytes for a key of an open object, and while an object of more
 * than AGENT_SCAN_KEY_FEW members closes at most 12 bytes for each of them. A
 * member takes at least 6 bytes of text. Time: linear in the length of the
 * text, whatever the keys are: their hash is keyed with random bytes.
 */
#ifndef AGENT_CORE_SCAN_KEY_H
#define AGENT_CORE_SCAN_KEY_H

#include <stdbool.h>

#include <apr_pools.h>
#include <apr_tables.h>

/* Members of an object that are compared with each other, without a hash. */
#define AGENT_SCAN_KEY_FEW 16

typedef struct agent_scan_key_t {
    /* Offset in the text of the byte after the opening quote. */
    apr_uint32_t offset;
    /* In bytes, without escapes. */
    unsigned length : 31;
    unsigned is_escaped : 1;
} agent_scan_key_t;

/* Must be zeroed. */
typedef struct agent_scan_keys_t {
    const char *text;
    /* All memory comes from here; made with the first key. */
    apr_pool_t *scratch;
    /* Of agent_scan_key_t *: arrays of equal size, so that growing copies
     * nothing. */
    apr_array_header_t *chunks;
    apr_size_t count;
    /* Hash table: number of a key in its object + 1; 0 = empty. */
    apr_pool_t *slot_pool;
    apr_uint32_t *slots;
    apr_size_t slot_count;
    unsigned char secret[16];
} agent_scan_keys_t;

/* Adds a key; scratch memory is taken from a subpool of pool. */
void agent_scan_keys_push(agent_scan_keys_t *keys, agent_scan_key_t key,
                          apr_pool_t *pool);

/*
 * Removes the keys from number `first` on, which belong to one object. False if
 * two of them are equal; *duplicate is then one of the two.
 */
bool agent_scan_keys_close(agent_scan_keys_t *keys, apr_size_t first,
                           agent_scan_key_t *duplicate);

/* Frees the memory. */
void agent_scan_keys_release(agent_scan_keys_t *keys);

#endif
