/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, reads and writes digests; see digest.h. */
#include "digest.h"

#include <string.h>

#include <openssl/evp.h>

#define SHA256_BYTES 32

/* Found once: looking it up for each digest takes longer than the digest. Set
 * by rlr_digest_begin(), read-only afterwards. */
static EVP_MD *sha256;

static const char label[] = "sha256:";
#define LABEL_LENGTH (sizeof(label) - 1)

static const char hex_digits[] = "0123456789abcdef";

bool rlr_digest_begin(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    return sha256 != NULL;
}

void rlr_digest_end(void)
{
    EVP_MD_free(sha256);
    sha256 = NULL;
}

/* Without memory all texts have the same digest, and so one counter. */
rlr_digest_t rlr_digest_make(const char *text, size_t length)
{
    unsigned char full[SHA256_BYTES];
    rlr_digest_t digest;

    if (EVP_Digest(text, length, full, NULL, sha256, NULL) != 1) {
        memset(full, 0, sizeof(full));
    }
    memcpy(digest.bytes, full, sizeof(digest.bytes));
    return digest;
}

/* 0 to 15, or -1. */
static int read_digit(char c)
{
    const char *place = NULL;

    if (c >= 'A' && c <= 'F') {
        c = (char)(c - 'A' + 'a');
    }
    if (c != '\0') {
        place = strchr(hex_digits, c);
    }
    return place != NULL ? (int)(place - hex_digits) : -1;
}

bool rlr_digest_parse(rlr_digest_t *digest, const char *text)
{
    size_t length;

    if (strncmp(text, label, LABEL_LENGTH) != 0) {
        return false;
    }
    text += LABEL_LENGTH;
    length = strlen(text);
    if (length != 2 * RLR_DIGEST_BYTES && length != 2 * SHA256_BYTES) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        int digit = read_digit(text[i]);

        if (digit < 0) {
            return false;
        }
        if (i < 2 * RLR_DIGEST_BYTES) {
            unsigned char *byte = &digest->bytes[i / 2];

            *byte = (unsigned char)(i % 2 == 0 ? digit << 4 : *byte | digit);
        }
    }
    return true;
}

void rlr_digest_format(char out[RLR_DIGEST_TEXT_SIZE],
                       const rlr_digest_t *digest)
{
    char *p = out + LABEL_LENGTH;

    memcpy(out, label, LABEL_LENGTH);
    for (int i = 0; i < RLR_DIGEST_BYTES; i++) {
        *p++ = hex_digits[digest->bytes[i] >> 4];
        *p++ = hex_digits[digest->bytes[i] & 15];
    }
    *p = '\0';
}

bool rlr_digest_equal(const rlr_digest_t *a, const rlr_digest_t *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}
