/* SPDX-License-Identifier: Apache-2.0 */
/* Computes digests with libcrypto. */
#include "sha256.h"

#include <string.h>

#include <openssl/evp.h>

#define SHA256_BYTES 32

/* Fetched once, since that takes longer than a digest. Set by
 * rlr_sha256_begin(), read-only afterwards. */
static EVP_MD *sha256;

bool rlr_sha256_begin(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    return sha256 != NULL;
}

void rlr_sha256_end(void)
{
    EVP_MD_free(sha256);
    sha256 = NULL;
}

/* Without memory all texts have the same digest, and so share one counter. */
rlr_digest_t rlr_sha256_digest(const char *text, size_t length)
{
    unsigned char full[SHA256_BYTES];
    rlr_digest_t digest;

    if (EVP_Digest(text, length, full, NULL, sha256, NULL) != 1) {
        memset(full, 0, sizeof(full));
    }
    memcpy(digest.bytes, full, sizeof(digest.bytes));
    return digest;
}
