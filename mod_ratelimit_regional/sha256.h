/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4): what stands for an API key or a user id wherever the
 * module remembers, prints or is told one. Not for passwords.
 */
#ifndef RLR_SHA256_H
#define RLR_SHA256_H

#include <stddef.h>

#define RLR_SHA256_BYTES 32

/* The digest of length bytes at data. */
void rlr_sha256(unsigned char digest[RLR_SHA256_BYTES], const void *data,
                size_t length);

#endif
