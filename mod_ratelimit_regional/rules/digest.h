/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digest that stands for an API key or a user id in the configuration, in
 * logs, on the status page and in counters: the first half of its SHA-256,
 * written as "sha256:" and 32 hex digits. An operator computes it with
 *
 *   printf %s "$KEY" | sha256sum | cut -c1-32
 *
 * sha256.h computes it from the text.
 */
#ifndef RLR_DIGEST_H
#define RLR_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#define RLR_DIGEST_BYTES 16
/* "sha256:", the digits, the terminator. */
#define RLR_DIGEST_TEXT_SIZE (7 + 2 * RLR_DIGEST_BYTES + 1)

typedef struct rlr_digest_t {
    unsigned char bytes[RLR_DIGEST_BYTES];
} rlr_digest_t;

/* Reads "sha256:" and 32 digits, or all 64; false if the text is anything
 * else. */
bool rlr_digest_parse(rlr_digest_t *digest, const char *text);

/* Writes "sha256:" and 32 lower case hex digits, NUL-terminated. */
void rlr_digest_format(char out[RLR_DIGEST_TEXT_SIZE],
                       const rlr_digest_t *digest);

/* Whether the digests are equal; not in constant time. */
bool rlr_digest_equal(const rlr_digest_t *a, const rlr_digest_t *b);

#endif
