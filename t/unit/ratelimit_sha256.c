/* SPDX-License-Identifier: Apache-2.0 */
/* OBJECTS: ../mod_ratelimit_regional/sha256.c */
/* SHA-256 against the examples that NIST publishes with FIPS 180-4, and at
 * every length around the padding's borders. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "../../mod_ratelimit_regional/sha256.h"

static void check_digest(const void *data, size_t length, const char *expected)
{
    unsigned char digest[RLR_SHA256_BYTES];
    char text[2 * RLR_SHA256_BYTES + 1];

    rlr_sha256(digest, data, length);
    for (int i = 0; i < RLR_SHA256_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    assert_string_equal(text, expected);
}

static void the_published_examples_have_their_digests(void **state)
{
    static char million[1000000];

    check_digest("", 0,
                 "e3b0c44298fc1c149afbf4c8996fb924"
                 "27ae41e4649b934ca495991b7852b855");
    check_digest("abc", 3,
                 "ba7816bf8f01cfea414140de5dae2223"
                 "b00361a396177a9cb410ff61f20015ad");
    check_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                 "248d6a61d20638b8e5c026930c3e6039"
                 "a33ce45964ff2167f6ecedd419db06c1");
    check_digest("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                 "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                 112,
                 "cf5b16a778af8380036ce59e7b049237"
                 "0b249b11e8f07a51afac45037afee9d1");
    memset(million, 'a', sizeof(million));
    check_digest(million, sizeof(million),
                 "cdc76e5c9914fb9281a1c7e284d73e67"
                 "f1809a48a497200e046d39ccc7112cd0");
}

/* The digest of the digests of 0 to 256 bytes 'x', by coreutils' sha256sum:
 * for n in $(seq 0 256); do head -c $n /dev/zero | tr '\0' x | sha256sum |
 * cut -c1-64 | xxd -r -p; done | sha256sum */
static void each_length_is_padded_as_it_should(void **state)
{
    static unsigned char digests[257 * RLR_SHA256_BYTES];
    char text[256];

    memset(text, 'x', sizeof(text));
    for (size_t length = 0; length <= sizeof(text); length++) {
        rlr_sha256(digests + length * RLR_SHA256_BYTES, text, length);
    }
    check_digest(digests, sizeof(digests),
                 "3b363e034edd2d9a13e3f873e4058050"
                 "6522b8720f50f7455f010feef4a40118");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(the_published_examples_have_their_digests),
        CHECK_TEST(each_length_is_padded_as_it_should)};

    return CHECK_RUN(tests);
}
