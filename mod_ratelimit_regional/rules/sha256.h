/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 from libcrypto. */
#ifndef RLR_SHA256_H
#define RLR_SHA256_H

#include "digest.h"

/* Loads the algorithm; false if libcrypto has none. Call it before the first
 * digest, in one thread. */
bool rlr_sha256_begin(void);

/* Releases the algorithm. */
void rlr_sha256_end(void);

/* Returns the digest of an API key or user id. Any thread. */
rlr_digest_t rlr_sha256_digest(const char *text, size_t length);

#endif
