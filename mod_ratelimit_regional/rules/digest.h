/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands for an API key or a user id in configuration, log lines, status
 * pages and counters: the first half of its SHA-256, written
 * "sha256:" and 32 hex digits. An operator makes it with
 *
 *   printf %s "$KEY" | sha256sum | cut -c1-32
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

/* Before the first digest, in one thread: takes SHA-256 from libcrypto; false
 * if it has none. rlr_digest_end() gives it back. */
bool rlr_digest_begin(void);
void rlr_digest_end(void);

/* The digest of a key or user id. Any thread. */
rlr_digest_t rlr_digest_make(const char *text, size_t length);

/* Reads "sha256:" and 32 digits, or all 64; false if it is anything else. */
bool rlr_digest_parse(rlr_digest_t *digest, const char *text);

void rlr_digest_format(char out[RLR_DIGEST_TEXT_SIZE],
                       const rlr_digest_t *digest);

bool rlr_digest_equal(const rlr_digest_t *a, const rlr_digest_t *b);

#endif
