/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and compares digests. */
#include "digest.h"

#include <string.h>

#include "hex.h"

#define SHA256_BYTES 32

static const char label[] = "sha256:";
#define LABEL_LENGTH (sizeof(label) - 1)

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
        int digit = rlr_hex_value(text[i]);

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
    static const char digits[] = "0123456789abcdef";
    char *p = out + LABEL_LENGTH;

    memcpy(out, label, LABEL_LENGTH);
    for (int i = 0; i < RLR_DIGEST_BYTES; i++) {
        *p++ = digits[digest->bytes[i] >> 4];
        *p++ = digits[digest->bytes[i] & 15];
    }
    *p = '\0';
}

bool rlr_digest_equal(const rlr_digest_t *a, const rlr_digest_t *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}
